# A revert does not look at the user's checkout, whatever state that is in, and leaves it so.

longhaul run > ../ran
git rev-parse main > ../base
git switch -q --detach
cat .git/HEAD && git status --porcelain
longhaul revert --to "$(cat ../base)"
cat .git/HEAD && git status --porcelain
git rev-parse longhaul/kept | diff - ../base
