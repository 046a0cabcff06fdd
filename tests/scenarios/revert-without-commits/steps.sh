# A revert in a repository without commits says so.

longhaul run > ../ran
rm -rf .git && git init -q -b main
longhaul revert --to abcdef
