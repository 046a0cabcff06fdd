from dataclasses import dataclass, field, asdict, replace
@dataclass(order=True)
class Item:
    price: float
    name: str = "x"
    tags: list = field(default_factory=list, compare=False)
print(Item(2.5), Item(1) < Item(2), asdict(Item(1, "a", ["t"])), replace(Item(1), name="z"))
@dataclass(frozen=True)
class Fixed: v: int
try: Fixed(1).v = 2
except Exception as e: print(type(e).__name__, e)
