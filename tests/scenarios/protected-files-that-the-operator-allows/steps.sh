# The operator lets agents write protected files.

longhaul run > ../ran
git ls-tree -r --name-only longhaul/kept
