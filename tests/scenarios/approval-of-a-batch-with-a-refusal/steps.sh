# A refusal keeps its place in a batch.

longhaul run > ../ran
open | wc -l
reply y
reply n
longhaul resume > ../ran
told | pick . posts puts
answers
longhaul replay > ../replayed
