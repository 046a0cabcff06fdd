# An answer by rule answers what is open and like it.

longhaul run > ../ran
open | wc -l
reply a
longhaul --json approvals | pick 'approvals[status=open].tool'
reply n
longhaul resume > ../ran
told | pick 'posts[*]' | sort
