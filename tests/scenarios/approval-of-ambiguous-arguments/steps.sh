# Arguments that two readers read differently are refused, and patterns decide.

longhaul run > ../ran
longhaul --json approvals | pick 'approvals[*].arguments'
reply n
longhaul resume > ../ran
answers
# Only docs/a left.
told | pick requests.post
