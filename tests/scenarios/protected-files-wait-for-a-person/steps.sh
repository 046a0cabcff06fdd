# A feature that changes a protected file waits for a person before it is committed.

longhaul run > ../ran
grep -e '^│ protected' -e '+touch owned' ../ran
git branch --list longhaul/kept
longhaul status | grep protected
reply a
longhaul resume > ../ran
reply y
longhaul resume > ../ran
git ls-tree -r --name-only longhaul/kept
events commit protected
events approval approval decision
longhaul diff > ../diff
longhaul report | grep '(protected)'
