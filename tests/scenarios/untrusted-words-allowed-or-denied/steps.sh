# The operator lets acts after untrusted words pass, or refuses them, or allows some.

longhaul run > ../ran
told | pick 'posts[*]'
later deny/longhaul.toml
longhaul run > ../ran
told | pick 'posts[*]'
answers | tail -n 1
later rules/longhaul.toml
longhaul run > ../ran
told | pick 'posts[*]'
