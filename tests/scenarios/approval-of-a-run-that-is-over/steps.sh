# A run that is over waits for no answer.

longhaul run > ../ran
open > ../asked
longhaul abandon
longhaul approvals answer "$(cat ../asked)" y
longhaul approvals
told | pick . posts
