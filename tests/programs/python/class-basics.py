class Point:
    count = 0
    def __init__(self, x, y=0): self.x, self.y = x, y; Point.count += 1
    def __repr__(self): return f"Point({self.x}, {self.y})"
    def __eq__(self, o): return isinstance(o, Point) and (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __add__(self, o): return Point(self.x + o.x, self.y + o.y)
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __bool__(self): return bool(self.x or self.y)
print(Point(1, 2) + Point(3), Point(1) == Point(1), len({Point(1), Point(1)}), abs(Point(3, 4)), bool(Point(0)), Point.count)
