# The work of a run is shown and merged.

longhaul run > ../ran
longhaul diff | grep '^+++'
# Without colours where it is not read at a terminal.
longhaul diff | grep --count "$(printf '\033')"
longhaul diff "$(longhaul --json status | pick run)" one | grep '^+++'
longhaul diff one | grep '^+++'
longhaul diff --stat
longhaul diff nine
git rev-parse main > ../before
echo changed > GOAL.md && longhaul merge
git checkout -q GOAL.md && longhaul merge --dry-run
git rev-parse main | diff - ../before
longhaul merge "$(longhaul --json status | pick run)"
git rev-parse longhaul/kept > ../tip && git rev-parse main | diff - ../tip
git status --porcelain
ls
longhaul merge
