# A plan that is written wrong makes no run.

longhaul run --plan ../later/cut-off.json
longhaul run --plan ../later/field.json
longhaul run --plan ../later/empty.json
longhaul run --plan ../later/circle.json
longhaul run --plan ../later/check.json
longhaul runs
