class Count:
    def __init__(self, n): self.n = n
    def __iter__(self): self.i = 0; return self
    def __next__(self):
        if self.i >= self.n: raise StopIteration
        self.i += 1; return self.i
print(list(Count(3)), sum(Count(4)), max(Count(2)), 2 in Count(3)); a, *b = Count(4); print(a, b)
it = iter([1, 2]); print(next(it), next(it), next(it, "end"), list(iter([5, 6, 0].pop, 5)))
