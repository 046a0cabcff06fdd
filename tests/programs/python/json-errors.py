import json
for bad in ("", "{", "[1,]", "undefined", "{'a': 1}", "[1] x"):
    try: json.loads(bad)
    except json.JSONDecodeError as e: print(type(e).__name__, e.pos)
try: json.dumps({1, 2})
except TypeError as e: print(e)
print(json.loads("[NaN, 1e400, -0]"))
