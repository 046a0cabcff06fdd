class S:
    __slots__ = ("a",)
s = S(); s.a = 1
try: s.b = 2
except AttributeError: print("no b", s.a)
class Meta(type):
    def __new__(m, name, bases, ns): ns["made_by"] = m.__name__; return super().__new__(m, name, bases, ns)
class K(metaclass=Meta): pass
print(K.made_by, type(K).__name__)
