import json
s = json.dumps({"a": [1, None, True, 1.5], "b": {"c": "é\u2028\"q"}, 3: "k"})
print(s, json.loads(s)["b"], json.dumps({"b": 1, "a": 2}, sort_keys=True, indent=2), json.dumps("é", ensure_ascii=False), json.dumps([1, 2], separators=(",", ":")))
