x = "global"
def f():
    x = "outer"
    def g():
        global x
        return x
    def h(): return x
    return g(), h()
print(f())
try:
    def bad(): print(y); y = 1
    bad()
except UnboundLocalError as e: print(type(e).__name__)
