from enum import Enum, IntEnum, auto
class Color(Enum):
    RED = 1
    GREEN = auto()
    def nice(self): return self.name.title()
class Level(IntEnum): LOW = 1; HIGH = 5
print(Color.RED, Color(2), Color["RED"].value, [c.nice() for c in Color], Level.HIGH > 3, repr(Color.GREEN), Color.RED is Color(1))
