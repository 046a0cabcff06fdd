# A policy for a function that there is not lets no call pass, also when it is written so meanwhile.

longhaul run
later right/longhaul.toml
longhaul run > ../ran
cp ../later/wrong/longhaul.toml .
longhaul resume
told | pick . posts
cp ../later/right/longhaul.toml .
longhaul resume > ../ran
reply y
longhaul resume > ../ran
told | pick 'posts[*]'
