def counter():
    n = 0
    def up(by=1):
        nonlocal n; n += by; return n
    return up
a, b = counter(), counter()
a(); a(5); print(a(), b())
fs = [lambda: i for i in range(3)]; gs = [lambda i=i: i for i in range(3)]
print([f() for f in fs], [g() for g in gs])
