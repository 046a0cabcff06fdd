class Timer:
    def __enter__(self): print("in"); return self
    def __exit__(self, kind, value, tb): print("out", kind and kind.__name__, value); return kind is KeyError
with Timer() as t: print(type(t).__name__)
with Timer(): raise KeyError("k")
from contextlib import contextmanager, suppress, ExitStack
@contextmanager
def tag(n):
    print(f"<{n}>")
    try: yield n
    finally: print(f"</{n}>")
with tag("a") as a, tag("b"): print(a)
with suppress(ZeroDivisionError): 1 / 0
with ExitStack() as s: s.callback(print, "last"); print("first")
