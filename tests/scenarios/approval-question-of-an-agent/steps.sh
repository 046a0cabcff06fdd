# A question of an agent waits for a person and gets their words.

longhaul run > ../ran
grep '^waits' ../ran
reply blue, please
longhaul resume > ../ran
# `answer` is how a person answers any other question of a run.
longhaul answer --text y
longhaul resume > ../ran
answers
