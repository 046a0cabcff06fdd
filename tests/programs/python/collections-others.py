from collections import defaultdict, deque, namedtuple, OrderedDict, ChainMap
d = defaultdict(list)
for w in ["apple", "bob", "avocado"]: d[w[0]].append(w)
q = deque([1, 2, 3], maxlen=3); q.append(4); q.appendleft(0); q.rotate(1)
P = namedtuple("P", "x y", defaults=[5])
o = OrderedDict(a=1, b=2); o.move_to_end("a")
print(dict(d), d, q, P(1), P(1)._replace(y=2)._asdict(), o, ChainMap({"a": 1}, {"a": 2, "b": 3})["b"])
