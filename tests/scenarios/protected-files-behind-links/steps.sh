# What a protected path leads to is protected, too, over a link to a directory and another one in there.

mkdir env && ln -s now/rc .envrc && ln -s env now && ln -s dev.sh env/rc && git add --all && git commit --quiet --message 'a link'
longhaul run > ../ran
grep 'added env/dev.sh' ../ran | tail -n 1
