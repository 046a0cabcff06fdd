# A call that asks waits for its answer and is made once.

longhaul run
told | pick 'posts[*]'
# A resume without an answer asks the same again.
open > ../asked
longhaul resume > ../ran
open | diff - ../asked
longhaul status | grep wants
reply ' '
longhaul answer --text y
reply y
longhaul approvals answer "$(cat ../asked)" n
longhaul resume
told | pick 'posts[*]'
longhaul approvals
events approval approval call decision
# The journal answers from here on, whatever the operator says now.
longhaul journal --invocation f-one/1/generate | grep -A 1 tools.approve
longhaul replay > ../replayed
