class Positive:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, o, t=None): return getattr(o, self.name)
    def __set__(self, o, v):
        if v <= 0: raise ValueError(f"{self.name[1:]} must be positive")
        setattr(o, self.name, v)
class Item:
    price = Positive()
    def __init__(self, p): self.price = p
print(Item(5).price)
try: Item(-1)
except ValueError as e: print(e)
