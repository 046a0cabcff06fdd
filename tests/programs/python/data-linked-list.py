class Node:
    def __init__(self, v, nxt=None): self.v, self.nxt = v, nxt
    def __iter__(self):
        n = self
        while n: yield n.v; n = n.nxt
l = None
for v in (3, 2, 1): l = Node(v, l)
print(list(l))
p, prev = l, None
while p: p.nxt, prev, p = prev, p, p.nxt
print(list(prev))
