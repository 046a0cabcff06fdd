# A commit and a file by hand are kept by a run that goes on.

longhaul run --sessions 1 > ../ran
printf 'in no commit' > "../home/trees/$(longhaul --json status | pick run)/loose.txt"
git worktree add -q ../mine longhaul/kept && cd ../mine && echo 'of a person' > mine.txt && git add mine.txt && git commit -qm 'by hand' && cd ../project && git worktree remove ../mine
longhaul resume > ../ran
git show longhaul/kept:mine.txt
# With the feature that came next.
git show longhaul/kept:loose.txt
