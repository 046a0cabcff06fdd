print(1, "a", None, [1, "x"], ("t",), sep="-", end="!\n")
print(*[1, 2], *"ab", sep=","); print(); print({"k": [1, {"n": {1}}]}, {1, }, set(), frozenset([1]), range(3), b"by\x00", 1.0, 1e100, Ellipsis, print)
