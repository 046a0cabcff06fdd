def f(x):
    match x:
        case 0 | 1: return "small"
        case int(n) if n > 100: return f"big {n}"
        case [a, b, *rest]: return f"list {a} {b} {rest}"
        case {"kind": k, **more}: return f"map {k} {more}"
        case str() as s: return "text " + s
        case _: return "other"
print([f(v) for v in (1, 500, [1, 2, 3, 4], {"kind": "a", "z": 1}, "hey", None, [1])])
