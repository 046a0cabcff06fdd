import functools
def trace(prefix):
    def outer(f):
        @functools.wraps(f)
        def inner(*a, **k):
            r = f(*a, **k); print(f"{prefix}{f.__name__}{a}{k or ''} = {r}"); return r
        return inner
    return outer
@trace("> ")
def add(a, b=1):
    "Adds."
    return a + b
add(1); add(2, b=5); print(add.__name__, add.__doc__)
