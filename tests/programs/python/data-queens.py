def solve(n, row=0, cols=()):
    if row == n: yield cols; return
    for c in range(n):
        if all(c != x and abs(c - x) != row - r for r, x in enumerate(cols)): yield from solve(n, row + 1, cols + (c,))
print(list(solve(6)), sum(1 for _ in solve(7)))
