# A goal is read again for a run that goes on.
# New features of a goal used to need a new run, and a circle was what a run stayed with.

longhaul run --sessions 1 > ../ran
later more/GOAL.md
longhaul resume --reread-goal > ../ran
head -n 1 ../ran
longhaul --json status | pick 'features[*]' id status
later wrong/GOAL.md
longhaul resume --reread-goal
# Nothing changed.
longhaul --json status | pick 'features[*]' id status
