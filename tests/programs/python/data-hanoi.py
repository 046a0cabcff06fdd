def hanoi(n, a="A", b="B", c="C"): return [] if not n else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)
print(len(hanoi(10)), hanoi(2))
