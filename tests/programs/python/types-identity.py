a = [1]; b = [1]
print(a == b, a is b, type(a) is list, type(1).__name__, callable(len), hash("x") == hash("x"), hasattr(a, "pop"), getattr(a, "zzz", "none"), isinstance(1, (str, int)), dir(object())[0][:2], vars(type("K", (), {"z": 1})())=={})
