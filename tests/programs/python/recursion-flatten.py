def permute(l): return [l] if len(l) < 2 else [[x] + p for i, x in enumerate(l) for p in permute(l[:i] + l[i + 1:])]
print(len(permute([1, 2, 3, 4])), permute(["a", "b"])); ack = lambda m, n: n + 1 if m == 0 else ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1)); print(ack(2, 3))
def power_set(s): return [[]] if not s else [r + t for r in power_set(s[1:]) for t in ([], [s[0]])]
print(sorted(power_set([1, 2])))
