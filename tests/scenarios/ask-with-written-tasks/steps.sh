# Tasks that are written are followed.

longhaul ask x --tasks ../later/tasks.json 2> /dev/null
longhaul --json status | pick 'features[*]' id status
