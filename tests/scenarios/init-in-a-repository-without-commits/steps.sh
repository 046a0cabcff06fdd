# What `init` writes is in nobody's way.

git rm -q longhaul.toml && git commit -qm 'no longhaul.toml'
rm -rf .git && git init -q -b main
cat .git/HEAD && git status --porcelain
longhaul init
cat .git/HEAD && git status --porcelain
