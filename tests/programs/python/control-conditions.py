x = 7
print("odd" if x % 2 else "even", 1 < x < 10, not [], [] or "d", 0 and 1, None is None, any([0, 1]), all([]), x == 7.0, "a" in "cat")
assert x == 7, "never"
print(bool("False"), [] == (), (1,) + (2,), isinstance(True, int))
