# What an instance of Python runs while it waits for a job: a little of everything, so that the pages of the heap which
# most jobs write are written already. It prints nothing and leaves nothing that a job could find.
import sys


class Shape:
    def __init__(self, sides):
        self.sides = sides


def describe(count):
    try:
        int("x")
    except ValueError as error:
        text = f"{error!s:>40} {count}"
    return [str(number) + text for number in range(count) if number % 2 == 1]


table = {str(number): [number, number * 2.5, (number,)] for number in range(20)}
for key, value in sorted(table.items()):
    Shape(value).sides.append(key.upper())
print("", end="", sep=describe(10) and "", file=sys.stdout)
