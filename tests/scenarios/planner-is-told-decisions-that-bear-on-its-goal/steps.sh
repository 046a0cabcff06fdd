# A planner is told the decisions that bear on its goal, and why.

longhaul run > ../ran
# Nothing was decided before the first run.
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.decisions'
later related/GOAL.md
longhaul run > ../ran
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.decisions[0]' decision about outcome chosen_because
later other/GOAL.md
longhaul run > ../ran
# What does not bear on the goal is not told.
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.decisions'
