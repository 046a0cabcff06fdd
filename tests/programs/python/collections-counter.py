from collections import Counter
c = Counter("mississippi")
print(c, c.most_common(2), c["z"], Counter(a=3) - Counter(a=1, b=2), sum(c.values()), sorted(c.elements())[:3])
