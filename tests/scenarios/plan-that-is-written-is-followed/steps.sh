# A plan that is written is followed, and no planner is asked.

longhaul run --plan ../later/plan.json > ../ran
git log -1 --format=%s longhaul/kept
events task_started plugin
