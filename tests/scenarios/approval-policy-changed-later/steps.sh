# What was decided is not decided again when the operator changes the policy: what was made stays, and what was not
# made is refused.

longhaul run > ../ran
reply y
longhaul resume > ../ran
later longhaul.toml
reply y
longhaul resume > ../ran
told | pick 'posts[*]'
answers
