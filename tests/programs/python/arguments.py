def f(a, b=2, *args, c, d=4, **rest): return a, b, args, c, d, rest
print(f(1, c=3), f(1, 5, 6, 7, c=8, e=9))
def g(x, /, y, *, z): return x + y + z
print(g(1, y=2, z=3))
try: g(x=1, y=2, z=3)
except TypeError as e: print(type(e).__name__)
