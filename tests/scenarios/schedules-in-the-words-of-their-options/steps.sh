# Schedules and agents are shown in the words of their options. They were shown in the names of types: `Once`, `Read`.

mkdir in out && echo 'print(1)' > job.py
longhaul agent add first --python job.py --dir in:/in:ro --dir out:/out
longhaul agent show first | grep sees
longhaul schedule add yearly --agent first --cron '0 0 1 1 *' 2> /dev/null
longhaul schedule show yearly --fires 1
longhaul schedule add daily --agent first --cron @daily --missed skip --overlap 2> /dev/null
longhaul schedule show daily --fires 0 | grep rules
