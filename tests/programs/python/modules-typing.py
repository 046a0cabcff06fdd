from typing import Optional, Union, TypedDict, NamedTuple, Protocol, get_type_hints, Generic, TypeVar
class P(NamedTuple): x: int; y: int = 0
class D(TypedDict): a: int
T = TypeVar("T")
class Box(Generic[T]):
    def __init__(self, v: T): self.v = v
def f(a: int, b: Optional[str] = None) -> list[int]: return [a]
print(P(1), D(a=1), Box[int](5).v, f.__annotations__["a"], get_type_hints(f)["return"], list[int])
