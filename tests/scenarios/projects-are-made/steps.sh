# A project is made where there is nothing, and where there are files. A refusal makes nothing.

longhaul projects
longhaul new shop
git -C shop log --format=%s
# Files without a repository: it is made, and what is in it is left to its owner.
mkdir old && echo 'print(1)' > old/main.py
longhaul --project old init --name older
git -C old status --porcelain --branch
# The latest first.
longhaul --json projects | pick 'items[*]' project status passing.done passing.of
longhaul new elsewhere/shop
ls
longhaul new elsewhere/shop --name shop2
# A name whose project is gone is free.
rm -r shop
longhaul new again/shop
