import sys
sys.setrecursionlimit(5000)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
print(depth(900), depth(3000))
