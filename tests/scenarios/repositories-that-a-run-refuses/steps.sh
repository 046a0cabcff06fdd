# A project is a repository with everything committed.

longhaul init
longhaul new .
echo x > new.txt && longhaul run
rm new.txt && echo 'And more.' >> GOAL.md && longhaul run
git checkout -q GOAL.md && git switch -qc side && git commit -q --allow-empty -m side && git switch -q main && git commit -q --allow-empty -m main && git merge -q --no-commit side 2> /dev/null
longhaul run
git merge --abort && mkdir .git/rebase-merge && longhaul run
rmdir .git/rebase-merge && git switch -qc longhaul/kept && longhaul run
git switch -q main && git branch -qD longhaul/kept && git branch longhaul && longhaul run
git branch -qD longhaul && git rm -q longhaul.toml && git commit -qm 'no longhaul.toml' && longhaul run
# `init` in the middle of a merge would become part of it.
git merge -q --no-commit side 2> /dev/null; longhaul init
rm -rf .git && git init -q -b main && cp ../later/longhaul.toml . && longhaul run
rm -rf .git && longhaul run
