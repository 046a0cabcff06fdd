import inspect
def f(a, b=1, *c, d, **e): "Doc."
print(inspect.signature(f), inspect.isfunction(f), inspect.getdoc(f), [p.kind.name for p in inspect.signature(f).parameters.values()][0])
