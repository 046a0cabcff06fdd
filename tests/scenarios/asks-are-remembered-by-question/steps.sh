# Answers to two questions are remembered beside each other.
# Every answer used to take the place of the one before, as if it contradicted it.

longhaul ask --agent one 'do alpha; put' 2> /dev/null
longhaul ask --agent one 'do beta; put' 2> /dev/null
longhaul ask --agent one 'do alpha; put' 2> /dev/null
longhaul --json memory list | pick 'items[scope=fact]' key value expires_at_ms
