# What is forbidden while a batch waits is refused, and what was answered is not asked again.

longhaul run > ../ran
reply y
reply y
later longhaul.toml
longhaul resume > ../ran
told | pick 'posts[*]' | sort
told | pick puts
answers
longhaul replay > ../replayed
