# A correction stops all of a batch.

longhaul run > ../ran
open | wc -l
reply y
reply do X
longhaul resume > ../ran
told | pick . posts puts
answers
longhaul replay > ../replayed
