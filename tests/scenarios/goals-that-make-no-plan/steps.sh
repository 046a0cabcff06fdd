# A goal that makes no plan is said with its line, and the project stays as it was.

git rm -q GOAL.md && git commit -qm 'no goal'
longhaul run
touch GOAL.md && git add GOAL.md && git commit -qm empty
longhaul run
printf '\n\n  \n' > GOAL.md && git commit -qam blanks
longhaul run
printf '\377\376\0' > GOAL.md && git commit -qam 'no text'
longhaul run
yes 'many words many words many words many words' | head -c 2200000 > GOAL.md && git commit -qam 'too much of it'
longhaul run
later circle/GOAL.md
longhaul run
later dependency/GOAL.md
longhaul run
later id-twice/GOAL.md
longhaul run
later priority/GOAL.md
longhaul run
later check/GOAL.md
longhaul run
later nothing-to-judge-by/GOAL.md
longhaul run
for number in $(seq 10000); do printf '## Feature: number %d\n- id: n%d\n- check: wrote_one\n\nx\n\n' "$number" "$number"; done > GOAL.md && git commit -qam 'ten thousand'
longhaul run
# No features, and a planner without a model.
sed -i 's|\[agents.code\]|[planner]\nplugin = "initializer"\n\n[agents.code]|' longhaul.toml && echo 'Build me a castle.' > GOAL.md && git commit -qam castle
git status --porcelain
longhaul run
