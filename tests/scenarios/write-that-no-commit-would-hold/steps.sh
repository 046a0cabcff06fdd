# A write that no commit would hold is an error of the call, and told with the feature.

longhaul run > ../ran
answers
git show --format= --name-only longhaul/kept
longhaul report | grep --only-matching 'not in the commit.*'
