def g():
    x = yield 1; print("got", x)
    try: yield 2
    finally: print("cleanup")
it = g(); print(next(it), it.send("v")); it.close()
def fib():
    a, b = 0, 1
    while True: yield a; a, b = b, a + b
from itertools import islice
print(list(islice(fib(), 10)))
