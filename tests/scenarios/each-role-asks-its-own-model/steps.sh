# Each role has a model of its own: its table says which.

longhaul ask "$(printf 'complex\n%s' 'PLAN {"tasks": [{"id": "a", "agent_id": "two", "instruction": "do a"}]}')" 2> /dev/null
told | pick models
told | pick remembered
