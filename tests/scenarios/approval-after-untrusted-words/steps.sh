# An act outwards after words of the web is asked about with their source. Work in the tree is not outwards, and neither
# is what was asked before.

longhaul run > ../ran
grep 'untrusted words' ../ran
told | pick 'posts[*]'
longhaul --json approvals | pick 'approvals[*]' untrusted_sources arguments
# The same is asked again until somebody answers.
open > ../asked
longhaul resume > ../ran
open | diff - ../asked
reply n
longhaul resume > ../ran
# By rule: the source asks no more in this run.
reply a
longhaul resume > ../ran
told | pick 'posts[*]'
answers | tail -n 2
longhaul replay > ../replayed
