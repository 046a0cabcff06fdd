stock = [{"name": "tea", "n": 5, "p": 2.5}, {"name": "jam", "n": 0, "p": 4}, {"name": "nut", "n": 12, "p": 1.25}]
worth = sorted(((s["n"] * s["p"], s["name"]) for s in stock if s["n"]), reverse=True)
for value, name in worth: print(f"{name:<8}{value:>8.2f}")
print(f"{'total':<8}{sum(v for v, _ in worth):>8.2f}")
