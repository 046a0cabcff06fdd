# A tool that is built in is refused where it cannot be.

longhaul run
