# A person refuses a change of a protected file, and the agent is told. Its next round does the same, and that is another
# commit to ask about.

longhaul run > ../ran
open > ../first
reply n not this
longhaul resume > ../ran
grep --only-matching 'a person refused the change.*' ../ran | head -n 1
test "$(open)" != "$(cat ../first)"
reply use no workflow
longhaul resume > ../ran
grep --only-matching 'a person says.*' ../ran | head -n 1
git branch --list longhaul/kept
