def quick(l): return l if len(l) < 2 else quick([x for x in l[1:] if x < l[0]]) + [l[0]] + quick([x for x in l[1:] if x >= l[0]])
def merge(l):
    if len(l) < 2: return l
    m = len(l) // 2; a, b = merge(l[:m]), merge(l[m:]); o = []
    while a and b: o.append((a if a[0] <= b[0] else b).pop(0))
    return o + a + b
print(quick([5, 2, 9, 1, 5]), merge([3, 1, 2, -5]), sorted(["b", "A", "c"], key=str.lower), sorted([(1, "b"), (1, "a")], reverse=True))
