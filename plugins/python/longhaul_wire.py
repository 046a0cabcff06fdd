"""What crosses the pipe between the judge of a check and the work: lines of JSON, and the values within them.

Plain data crosses by value and is built anew on the other side, by types that are looked at exactly, so no code of the
sender runs there. A list, dict or set is shared: both sides hold one of their own under a number, and what either has
changed since goes along with the next line, as if there were one. Anything else is for the side to say, in `other` and
`other_value`. Refuses lines over 1 MiB, and more items in shared containers than 200,000.
"""

import binascii
import collections
import datetime
import decimal
import fractions
import json
import math
import operator
import os
import uuid
from itertools import chain

LINE_BYTES_MAX = 1 << 20
ITEMS_MAX = 200_000
DEPTH_MAX = 50

# Taken before any work runs, which may put something else in its place.
_read, _write = os.read, os.write
_encoded = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decoded = json.JSONDecoder().decode
_READ_BYTES = 1 << 16


class Unplain(Exception):
    """A value that cannot cross, in words."""


class Broken(Exception):
    """A line that nobody could have meant, in words."""


class Pipe:
    """Lines in both directions, each a JSON object."""

    def __init__(self, reads=0, writes=1):
        self._reads, self._writes, self._rest = reads, writes, b""

    def send(self, message):
        line = _encoded(message).encode() + b"\n"
        if len(line) > LINE_BYTES_MAX:
            raise Unplain(f"values of {len(line)} bytes")
        while line:
            line = line[_write(self._writes, line[:_READ_BYTES]):]

    def receive(self):
        """The next line; none once the other side has ended."""
        parts, length = [self._rest], len(self._rest)
        while b"\n" not in parts[-1]:
            if length > LINE_BYTES_MAX:
                raise Broken(f"a line over {LINE_BYTES_MAX} bytes")
            part = _read(self._reads, _READ_BYTES)
            if not part:
                return None
            parts.append(part)
            length += len(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        try:
            message = _decoded(line.decode("ascii"))
        except (ValueError, RecursionError) as error:
            raise Broken(f"a line that is no JSON: {error}") from None
        return expect(message, dict)


def expect(value, *kinds):
    """The value, which is of exactly one of these types."""
    if type(value) not in kinds:
        raise Broken(f"a {type(value).__name__} where {' or '.join(kind.__name__ for kind in kinds)} belongs")
    return value


class Values:
    """Values of one side, as they cross. Numbers of what it shares begin at 0 or at 1, so that both sides differ."""

    def __init__(self, first):
        self._next = self._first = first
        # By number: the container, and what was in it when both sides had the same.
        self.shared = {}
        self._numbers = {}
        self._new = []

    def encode(self, value, depth=0):
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -_SMALL < value < _SMALL else ["int", hex(value)]
        if kind is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if kind in _CONTAINERS:
            return ["shared", self._number(value)]
        if depth > DEPTH_MAX:
            raise Unplain(f"values that nest deeper than {DEPTH_MAX} levels")
        if kind in _GROUPS:
            return [kind.__name__, [self.encode(part, depth + 1) for part in value]]
        write = _WRITERS.get(kind)
        parts = None if write is None else write(value)
        if parts is None:
            return self.other(value)
        return [kind.__name__, [self.encode(part, depth + 1) for part in parts]]

    def decode(self, value, depth=0):
        if value is None or type(value) in (bool, int, float, str):
            return value
        tag, *rest = expect(value, list) or [None]
        if depth > DEPTH_MAX + 1:
            raise Broken("values that nest too deep")
        if tag == "shared" and len(rest) == 1 and expect(rest[0], int) in self.shared:
            return self.shared[rest[0]][0]
        if tag == "int" and len(rest) == 1:
            return _checked(int, expect(rest[0], str), 16)
        if tag == "float" and len(rest) == 1:
            return _checked(float, expect(rest[0], str))
        make = _READERS.get(tag) if type(tag) is str else None
        if make is None:
            return self.other_value(value)
        if len(rest) != 1:
            raise Broken(f"a `{tag}` of {len(rest)} parts")
        parts = [self.decode(part, depth + 1) for part in expect(rest[0], list)]
        return _checked(make, *parts) if tag not in ("tuple", "frozenset") else _checked(make, parts)

    def other(self, value):
        raise Unplain(f"a value of the type `{type(value).__name__}`")

    def other_value(self, value):
        raise Broken(f"a value with the tag {value[:1]!r:.80}")

    # What is shared.

    def _number(self, value):
        number = self._numbers.get(id(value))
        if number is None:
            number = self._next
            self._next += 2
            self._hold(number, value)
            self._new.append(number)
        return number

    def _hold(self, number, value):
        # Held, so that no other gets its `id`.
        self.shared[number] = [value, None]
        self._numbers[id(value)] = number

    def changes(self):
        """What the other side does not have yet: `[number, type, content]` each. Called once all else is encoded."""
        shared = self.shared.items()
        changed = [number for number, entry in shared if entry[1] is not None and not self.is_known(entry)]
        queue, self._new, put = changed + self._new, [], []
        while queue:
            number = queue.pop()
            entry = self.shared[number]
            value, kind = entry[0], type(entry[0])
            content = [self.encode(part) for part in _CONTAINERS[kind].parts(value)]
            put.append([number, kind.__name__, content])
            entry[1] = _known(value)
            queue += self._new
            self._new = []
        if put and sum(len(value) for value, _ in self.shared.values()) > ITEMS_MAX:
            raise Unplain(f"lists, dicts and sets of more than {ITEMS_MAX} items")
        return put

    def take(self, put):
        """Makes what the other side has changed the same here."""
        fill = []
        for one in expect(put, list):
            if len(expect(one, list)) != 3:
                raise Broken("a change that has not three parts")
            number, name, content = one
            kind = _NAMES.get(expect(name, str))
            entry = self.shared.get(expect(number, int))
            if kind is None or (entry is not None and type(entry[0]) is not kind):
                raise Broken(f"a change of `{name[:80]}`")
            if entry is None:
                if number < 0 or number % 2 == self._first:
                    raise Broken(f"a container under the number {number}")
                self._hold(number, kind())
            fill.append((number, kind, expect(content, list)))
        for number, kind, content in fill:
            value = self.shared[number][0]
            _checked(_CONTAINERS[kind].fill, value, [self.decode(part) for part in content])
            self.shared[number][1] = _known(value)
        if sum(len(value) for value, _ in self.shared.values()) > ITEMS_MAX:
            raise Broken(f"lists, dicts and sets of more than {ITEMS_MAX} items")

    def is_known(self, entry):
        """Whether the other side has a container as it is, by identity: to compare would run code of the values."""
        value, known = entry
        if known is None or type(value) is bytearray:
            return value == known
        parts, width = (chain(value, value.values()), 2) if isinstance(value, dict) else (value, 1)
        return width * len(value) == len(known) and all(map(operator.is_, parts, known))

    def forget(self, number):
        entry = self.shared.pop(number, None)
        if entry is not None:
            self._numbers.pop(id(entry[0]), None)


def _checked(make, *parts):
    try:
        return make(*parts)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise Broken(f"a value that there is not: {error}"[:200]) from None


# What JSON keeps exactly in every reader.
_SMALL = 1 << 53

_GROUPS = (tuple, frozenset)


def _text_of(data):
    return binascii.b2a_base64(data, newline=False).decode()


def _bytes_of(text):
    return binascii.a2b_base64(expect(text, str), strict_mode=True)


def _of_fields(*names):
    return lambda value: [getattr(value, name) for name in names]


_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond", "tzinfo", "fold")


def _of_moment(*names):
    """Of a clock whose offset is fixed: any other is a rule, and an object."""
    fields = _of_fields(*names)
    return lambda value: fields(value) if type(value.tzinfo) in (type(None), datetime.timezone) else None


def _moment(kind):
    def make(*fields):
        *fields, fold = fields
        return kind(*fields, fold=fold)

    return make


_WRITERS = {
    bytes: lambda value: [_text_of(value)],
    complex: lambda value: [value.real, value.imag],
    range: _of_fields("start", "stop", "step"),
    slice: _of_fields("start", "stop", "step"),
    type(...): lambda value: [],
    decimal.Decimal: lambda value: [str(value)],
    fractions.Fraction: _of_fields("numerator", "denominator"),
    uuid.UUID: lambda value: [value.hex],
    datetime.date: _of_fields(*_DATE),
    datetime.datetime: _of_moment(*_DATE, *_TIME),
    datetime.time: _of_moment(*_TIME),
    datetime.timedelta: _of_fields("days", "seconds", "microseconds"),
    datetime.timezone: lambda value: list(value.__getinitargs__()),
}

_READERS = {kind.__name__: kind for kind in (*_GROUPS, *_WRITERS)}
_READERS.update(
    bytes=_bytes_of, ellipsis=lambda: ..., datetime=_moment(datetime.datetime), time=_moment(datetime.time)
)


class _Container:
    """How the content of a container is taken out and put in: a list of parts that cross as any value does."""

    def __init__(self, parts=list, fill=None):
        self.parts, self.fill = parts, fill


def _fill_list(value, parts):
    value[:] = parts


def _fill_set(value, parts):
    value.clear()
    value.update(parts)


def _fill_dict(value, parts):
    if len(parts) % 2:
        raise ValueError("a key without a value")
    value.clear()
    for at in range(0, len(parts), 2):
        value[parts[at]] = parts[at + 1]


def _fill_bytes(value, parts):
    (data,) = parts
    value[:] = expect(data, bytes)


def _pairs(value):
    return list(chain.from_iterable(value.items()))


# What a `defaultdict` may make for a key that is missing. Anything else is a function of somebody's.
_FACTORIES = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}


def _factory_of(value):
    factory = value.default_factory
    if factory is None:
        return None
    if type(factory) is not type or _FACTORIES.get(factory.__name__) is not factory:
        raise Unplain("a `defaultdict` with a function")
    return factory.__name__


def _fill_default(value, parts):
    name, *parts = parts
    value.default_factory = None if name is None else _FACTORIES[expect(name, str)]
    _fill_dict(value, parts)


_CONTAINERS = {
    list: _Container(fill=_fill_list),
    set: _Container(fill=_fill_set),
    dict: _Container(_pairs, _fill_dict),
    collections.OrderedDict: _Container(_pairs, _fill_dict),
    collections.Counter: _Container(_pairs, _fill_dict),
    collections.defaultdict: _Container(lambda value: [_factory_of(value), *_pairs(value)], _fill_default),
    bytearray: _Container(lambda value: [bytes(value)], _fill_bytes),
}

_NAMES = {kind.__name__: kind for kind in _CONTAINERS}


def _known(value):
    if type(value) is bytearray:
        return bytes(value)
    return tuple(chain(value, value.values()) if isinstance(value, dict) else value)
