import json
data = json.loads('{"users": [{"name": "Ann", "tags": ["a", "b"]}, {"name": "Bob"}]}')
print([u["name"] + ":" + ",".join(u.get("tags", [])) for u in data["users"]], data["users"][0]["tags"][-1], json.loads("1e3"), json.loads('"\\ud83d\\ude00"'))
