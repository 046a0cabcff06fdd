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
# Both forms list the same, unless all is asked for. JSON listed the answered ones, too.
longhaul --json approvals | pick approvals
longhaul approvals list --all
longhaul --json approvals list --all | pick 'approvals[*]' status status_text
events approval approval call decision
# The journal answers from here on, whatever the operator says now.
longhaul journal --invocation f-one/1/generate | grep -A 1 tools.approve
longhaul replay > ../replayed
