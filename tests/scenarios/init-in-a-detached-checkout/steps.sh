# What `init` writes is in nobody's way.

git rm -q longhaul.toml && git commit -qm 'no longhaul.toml'
git switch -q --detach
cat .git/HEAD && git status --porcelain
longhaul init
cat .git/HEAD && git status --porcelain
