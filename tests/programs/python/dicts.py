d = {"b": 1, "a": 2}
d |= {"c": 3}; d.setdefault("z", []).append(1)
print(d, d.pop("b"), d.get("q", "none"), list(d), {**d, "a": 9}, dict(zip("xy", [1, 2])), d.popitem(), sorted(d), "a" in d)
for k, v in d.items(): print(k, v)
try: d["missing"]
except KeyError as e: print("KeyError", e)
