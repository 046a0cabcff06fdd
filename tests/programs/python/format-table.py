rows = [("tea", 3.5), ("bread", 12.25)]
w = max(len(n) for n, _ in rows)
print("\n".join(f"| {n:<{w}} | {p:>6.2f} |" for n, p in rows)); print("-" * 20)
