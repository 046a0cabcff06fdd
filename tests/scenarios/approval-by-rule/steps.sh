# An answer by rule holds for what is like it in this run, until it is revoked.
# `text` is where the server hears of it; all but the command has to stay as it was.

longhaul run > ../ran
reply a
longhaul resume > ../ran
# The second passed by the rule.
told | pick 'posts[*]'
reply a
rule="$(longhaul --json approvals list | pick 'rules[0].id')" && longhaul approvals revoke "$(longhaul --json status | pick run)" "$rule" && echo "$rule" > ../rule
longhaul approvals revoke "$(longhaul --json status | pick run)" "$(cat ../rule)"
reply n
longhaul resume > ../ran
reply y
longhaul resume > ../ran
told | pick 'posts[*]'
answers
