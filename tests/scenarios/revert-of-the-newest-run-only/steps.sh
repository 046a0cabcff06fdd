# Only the newest run of a branch goes back.

longhaul run > ../ran
longhaul --json status | pick run > ../first
longhaul run > ../ran
longhaul resume "$(cat ../first)"
longhaul revert --to "$(git log --reverse --format=%H main..longhaul/kept | head -n 1)" --run "$(cat ../first)"
