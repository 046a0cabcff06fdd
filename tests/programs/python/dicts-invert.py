d = {"a": 1, "b": 2, "c": 1}
inv = {}
for k, v in d.items(): inv.setdefault(v, []).append(k)
print(inv, {v: k for k, v in d.items()}, min(d, key=lambda k: (d[k], k)), dict.fromkeys("ab", 0))
