first, *middle, last = range(6); (a, b), c = (1, 2), 3
print(first, middle, last, a, b, c, [*"ab", *[1]], {**{"a": 1}}); x = y = []; x.append(1); print(y); a, b = b, a; print(a, b)
