# A number of sessions is worked, and no more.

longhaul run --sessions 1 > ../ran
# A plan, a round and its verdict.
events task_started export feature
longhaul run --sessions 1 --plan-only
longhaul run --sessions 0
longhaul resume --sessions 5 > ../ran
