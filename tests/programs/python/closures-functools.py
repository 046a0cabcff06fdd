from functools import lru_cache, partial, reduce, cmp_to_key, singledispatch, cached_property
@lru_cache(None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(90), fib.cache_info().hits, partial(int, base=2)("101"), reduce(lambda a, b: a * b, range(1, 6)), sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)))
@singledispatch
def show(x): return "thing"
@show.register
def _(x: int): return "int"
@show.register(list)
def _(x): return "list of " + show(x[0])
print(show(1), show("a"), show([1]))
