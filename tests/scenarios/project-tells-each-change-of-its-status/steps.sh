# A project tells each change of its status.

longhaul run --sessions 1 > ../ran
grep paused ../ran
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json attach | pick . type payload.from payload.to | grep '^project_'
longhaul run
longhaul resume --sessions 1 > ../ran
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json attach | pick . type payload.from payload.to | grep '^project_'
# A new run of the same project.
longhaul run > ../ran
longhaul --json projects | pick 'items[*]' project status passing.done passing.of runs
longhaul --json attach | pick . type payload.from payload.to | grep '^project_'
# Numbered like all other events.
longhaul --json attach | pick number > ../numbers
seq "$(wc -l < ../numbers)" | diff - ../numbers
