for f in (lambda: 1 / 0, lambda: [][1], lambda: {}["k"], lambda: int("x"), lambda: None.x, lambda: "a" + 1, lambda: undefined, lambda: open("/nope")):
    try: f()
    except Exception as e: print(type(e).__name__, isinstance(e, LookupError))
