m = [[1, 2, 3], [4, 5, 6]]
print(list(zip(*m)), [list(r)[::-1] for r in zip(*m)], [sum(r) for r in m], [[sum(a * b for a, b in zip(r, c)) for c in zip(*[[1, 2], [3, 4], [5, 6]])] for r in m])
