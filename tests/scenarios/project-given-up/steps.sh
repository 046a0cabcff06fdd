# An abandoned project stays abandoned until it is started anew.

longhaul run --plan-only > ../ran
longhaul abandon --reason 'too dear'
longhaul --json projects | pick 'projects[*]' project status passing runs
longhaul --json status | pick project_status
longhaul resume
longhaul run
longhaul --json projects | pick 'projects[*]' project status passing runs
longhaul run --again > ../ran
longhaul --json projects | pick 'projects[*]' project status passing runs
longhaul --json attach | pick . type from to | grep '^project_'
