# A project for asks alone is checked for asks, and what a run would need is no finding. It was refused for the lack of it.

longhaul check
longhaul --json check | pick . ok findings overview.checks
longhaul --json check | pick 'overview.run_needs[*]' | wc -l
# A fault of an ask is one.
sed 's@"react"@"reakt"@' longhaul.toml > ../changed && cp longhaul.toml ../fine && cp ../changed longhaul.toml && longhaul check
# A goal that is named or written makes it a project for runs.
sed 's@"asked"@"asked"\ngoal = "PLAN.md"@' ../fine > longhaul.toml && longhaul check
cp ../fine longhaul.toml && echo 'Build me a castle.' > GOAL.md && longhaul check
