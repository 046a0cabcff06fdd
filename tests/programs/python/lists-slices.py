l = list(range(10))
print(l[2:8:3], l[::-2], l[10:], l[-3:-1], "hello"[::-1], l[slice(1, 4)]); l[::2] = [0] * 5; print(l)
def chunks(x, n): return [x[i:i + n] for i in range(0, len(x), n)]
print(chunks(l, 4))
