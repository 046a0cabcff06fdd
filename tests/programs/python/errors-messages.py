for f in (lambda: 1 / 0, lambda: [][1], lambda: int("x"), lambda: float("q"), lambda: "a" + 1, lambda: undefined, lambda: len(5), lambda: None + 1):
    try: f()
    except Exception as e: print(e)
