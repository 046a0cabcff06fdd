# What an agent remembers is there in the next run.

longhaul run > ../ran
answers
longhaul run > ../ran
answers | head -n 2
