# A model chooses who of several agents answers, or a plan is made, or the operator says who.
# A replay after each finds that what no plugin did stands in nobody's way.

longhaul ask 'do alpha; put to:two' 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
# Who is named and not there is the first.
longhaul ask 'do alpha; put' 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
longhaul ask --agent two 'do alpha' 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
longhaul ask --route 'do alpha, complex to:two' 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
longhaul ask "$(printf 'complex\n%s' 'PLAN {"tasks": [{"id": "a", "agent_id": "two", "instruction": "do a"}]}')" 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
longhaul ask --plan 'PLAN {"tasks": [{"id": "a", "agent_id": "two", "instruction": "do a"}]}' 2> /dev/null
events dispatch path agent
longhaul replay > ../replayed
longhaul ask --agent three x
longhaul runs | wc -l
