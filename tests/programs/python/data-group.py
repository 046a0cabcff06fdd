from itertools import groupby
from operator import itemgetter
rows = [("a", 1), ("b", 2), ("a", 3)]
print({k: [v for _, v in g] for k, g in groupby(sorted(rows), key=itemgetter(0))})
