def f(n): return 10 // n if n else f(n - 1) / 0
print(f(3)); print(f(0 if f(5) == 2 else 1)); import sys; sys.stdout.flush(); {}["gone"]
