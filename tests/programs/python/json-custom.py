import json
from datetime import date
class Money:
    def __init__(self, c): self.c = c
print(json.dumps({"p": Money(5), "d": date(2024, 1, 2)}, default=lambda o: o.isoformat() if isinstance(o, date) else vars(o)))
print(json.loads('{"x": 1.10, "y": {"z": 2}}', parse_float=str, object_hook=lambda d: sorted(d.items())))
