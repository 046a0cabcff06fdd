machine = {"idle": {"start": "running"}, "running": {"pause": "paused", "stop": "idle"}, "paused": {"start": "running"}}
state = "idle"
for e in ["start", "pause", "bogus", "start", "stop"]:
    nxt = machine[state].get(e); print(f"{state} --{e}--> {nxt or 'ignored'}"); state = nxt or state
