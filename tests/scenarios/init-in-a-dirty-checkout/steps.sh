# What `init` writes is in nobody's way.

git rm -q longhaul.toml && git commit -qm 'no longhaul.toml'
echo '# Another' > GOAL.md && echo x > new.txt
cat .git/HEAD && git status --porcelain
longhaul init
cat .git/HEAD && git status --porcelain
