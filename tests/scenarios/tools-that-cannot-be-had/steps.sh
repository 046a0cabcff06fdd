# A tool that cannot be had as configured says what to write.

longhaul run
cp ../later/path.toml longhaul.toml && longhaul run
cp ../later/printer.toml longhaul.toml && longhaul run
