# Steps that fail are planned again, then a person is asked, and in the end there is an answer.

longhaul run > ../ran
grep --only-matching '2 plans did not lead to the goal' ../ran | head -n 1
events replan replan
# What passes is not built again.
events commit feature | sort
# Without an answer it asks the same, and does nothing.
told | pick posts > ../posts
longhaul resume > ../ran
told | pick posts | diff - ../posts
longhaul answer "$(longhaul --json status | pick run)" --text 'a fox is an animal'
longhaul resume > ../ran
events replan replan
# The person takes it in hand: the question is over.
longhaul features "$(longhaul --json status | pick run)" drop three
longhaul resume > ../ran
longhaul --json status | pick status
events synthesis answer | grep --only-matching 'did two-1'
events commit feature | sort
longhaul replay > ../ran
