def merge(a, b):
    return {**a, **{k: merge(a[k], v) if isinstance(v, dict) and isinstance(a.get(k), dict) else v for k, v in b.items()}}
print(merge({"a": {"x": 1, "y": 2}, "l": [1]}, {"a": {"y": 3, "z": {"w": 1}}, "l": [2]}))
