# Of one agent nobody asks who answers. The answer is all that goes to standard output, and no repository is needed.

longhaul ask 'do alpha; put; look' 2> /dev/null
told | pick requests.model
told | pick 'puts[*]'
ls -A
longhaul --json status | pick . status branch ledger.total.model_calls ledger.total.tool_calls
longhaul --json status | pick ledger.total.usage.cost_microdollars | grep --count '^[1-9]'
longhaul log
longhaul replay
