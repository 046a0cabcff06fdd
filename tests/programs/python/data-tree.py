class Tree:
    def __init__(self): self.root = None
    def add(self, v):
        self.root = self._add(self.root, v)
    def _add(self, n, v):
        if n is None: return [None, v, None]
        i = 0 if v < n[1] else 2
        n[i] = self._add(n[i], v); return n
    def walk(self, n="root"):
        n = self.root if n == "root" else n
        if n: yield from self.walk(n[0]); yield n[1]; yield from self.walk(n[2])
t = Tree()
for v in [5, 2, 8, 1, 9, 3]: t.add(v)
print(list(t.walk()), t.root)
