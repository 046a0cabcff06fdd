# A name that git refuses fails its feature with the reason, and stops no other.

longhaul run > ../ran
grep --only-matching 'cannot be committed.*' ../ran | head -n 1
longhaul report | grep '^# '
longhaul report | grep --only-matching 'git.~1' | head -n 1
longhaul --json status | pick 'features[*]' id status
git show --format= --name-only longhaul/kept
