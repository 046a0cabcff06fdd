# A correction that comes first takes the other questions of its batch back.

longhaul run > ../ran
longhaul approvals answer "$(open | tail -n 1)" do X
longhaul resume > ../ran
told | pick . posts
longhaul approvals
