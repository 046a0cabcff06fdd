from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self): ...
    def show(self): return f"{type(self).__name__}: {self.area():.2f}"
class Circle(Shape):
    def __init__(self, r): self.r = r
    def area(self): return 3.14159 * self.r ** 2
print(Circle(2).show())
try: Shape()
except TypeError as e: print("TypeError")
