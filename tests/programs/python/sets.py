a, b = {1, 2, 3}, {2, 3, 4}
print(a | b, a & b, a - b, a ^ b, a <= {1, 2, 3}, a.isdisjoint({9}), len(a), sorted({"x", "y"})); a.add(9); a.discard(5); a.update([7]); print(sorted(a), frozenset([1]) in {frozenset([1])})
