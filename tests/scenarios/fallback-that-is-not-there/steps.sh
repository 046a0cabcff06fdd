# A fallback that is not there is refused before the run.

longhaul run
longhaul runs
