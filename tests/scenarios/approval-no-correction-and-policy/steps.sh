# A person's no, their correction and the operator's no are three errors.

longhaul run > ../ran
reply n
longhaul resume > ../ran
reply n too early
longhaul resume > ../ran
reply use put
longhaul resume > ../ran
reply y
longhaul resume > ../ran
answers
told | pick 'posts[*]'
longhaul replay > ../replayed
