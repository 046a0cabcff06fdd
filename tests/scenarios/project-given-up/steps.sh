# An abandoned project stays abandoned until it is started anew.

longhaul run --plan-only > ../ran
longhaul abandon --reason 'too dear'
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json status | pick project_status
longhaul resume
longhaul run
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul run --again > ../ran
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json attach | pick . type payload.from payload.to | grep '^project_'
