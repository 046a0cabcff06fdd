# Wrong tasks make no run.

longhaul ask x --tasks ../later/empty.json
longhaul ask x --tasks ../later/agent.json
longhaul ask x --tasks ../later/circle.json
longhaul ask x --tasks ../later/gone.json
longhaul runs
