# A run begins where HEAD is, and says so where that is on no branch.

git switch -q --detach
longhaul run > ../ran
grep HEAD ../ran
longhaul --json status | pick status
