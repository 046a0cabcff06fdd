# A completed project is open again when a feature regresses, and the run takes up what a person did and mends what broke.

longhaul run > ../ran
longhaul features recheck
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
git worktree add -q ../mine longhaul/kept && cd ../mine && echo 'nothing of the kind' > one.txt && git add one.txt && git commit -qm 'by hand'
cd ../mine && echo 'of a person' > mine.txt && git add mine.txt && git commit -qm 'by hand, too' && cd ../project && git worktree remove ../mine
longhaul features recheck
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json attach | pick '[type=project_status]' payload.from payload.to | tail -n 1
longhaul --json status | pick 'features[*]' id status reason
longhaul features recheck one
longhaul features recheck nine
# Of the copy nothing is left beside the tree and what it was brought to.
ls ../home/trees | wc -l
longhaul resume > ../ran
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
git show longhaul/kept:one.txt | head -n 1
git show longhaul/kept:mine.txt
