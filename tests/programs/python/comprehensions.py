print([x * x for x in range(10) if x % 2], {x: len(x) for x in ["a", "bb"]}, {x % 3 for x in range(9)}, sum(x for x in range(5)))
print([(i, j) for i in range(3) for j in range(i)], [[c for c in w] for w in ("ab", "c")], [y := 5, y ** 2])
