# What starts a schedule is told once. `schedule list` told it twice of a schedule that follows another agent.

echo 'print(1)' > job.py && longhaul agent add first --python job.py && longhaul agent add second --python job.py
longhaul schedule list
longhaul schedule add follows --agent second --after first 2> /dev/null
longhaul schedule add yearly --agent first --cron '0 0 1 1 *' 2> /dev/null
longhaul schedule add later --agent second --after first --when always --paused 2> /dev/null
longhaul schedule list
longhaul schedule pause follows
longhaul schedule resume follows
longhaul schedule remove yearly
longhaul schedule list
longhaul schedule add never --agent first --cron '60 * * * *'
