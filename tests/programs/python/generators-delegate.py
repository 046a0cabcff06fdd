def inner():
    r = yield "a"; return r + "!"
def outer():
    v = yield from inner(); yield v; yield from "xy"
it = outer(); print(next(it), it.send("hey"), list(it))
def flat(x):
    for i in x:
        if isinstance(i, list): yield from flat(i)
        else: yield i
print(list(flat([1, [2, [3, []], 4]])))
