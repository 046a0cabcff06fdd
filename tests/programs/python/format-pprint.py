from pprint import pprint, pformat
pprint({"name": "x" * 30, "list": list(range(20)), "nested": {"a": {"b": ["c" * 20] * 3}}})
print(pformat([1, 2]))
