def g():
    while True:
        try: yield 1
        except ValueError as e: print("caught", e)
it = g(); next(it); it.throw(ValueError("boom"))
def done():
    yield 1; return "value"
d = done(); next(d)
try: next(d)
except StopIteration as e: print(e.value)
