class T:
    def __init__(self): self._c = 0
    @property
    def f(self): return self._c * 9 / 5 + 32
    @f.setter
    def f(self, v): self._c = (v - 32) * 5 / 9
    @classmethod
    def of(cls, c): t = cls(); t._c = c; return t
    @staticmethod
    def unit(): return "F"
t = T.of(100); print(t.f, t.unit()); t.f = 32; print(t._c)
try: T().unit = property(); T.f.fget; del T().f
except AttributeError as e: print(type(e).__name__)
