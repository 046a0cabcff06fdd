# A person's no to a call counts more than a rule that they make later.

longhaul run > ../ran
longhaul approvals answer "$(open | tail -n 1)" n
reply a
longhaul resume > ../ran
told | pick 'posts[*]'
