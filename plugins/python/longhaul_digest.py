"""The digest of values: equal for equal values, however they came about.

It knows no interning, no order of sets and no addresses; which objects are shared is part of it. And which variables
make one group, since they share an object that can change.
"""

import abc
import enum
import hashlib
import itertools
import marshal
import types

from longhaul_values import (
    ATOMS,
    REFERENCES,
    Cell,
    Unkept,
    by_reference,
    current,
    flat_code,
    image,
    is_class,
    is_of_step,
    known,
    make_raw,
    module_of,
    mro_of,
    qualname_of,
    reduced,
    referents,
    text_of,
)

# Levels of objects within each other. What is deeper cannot be kept: the pickler calls itself for each.
DEPTH_MAX = 150

_sha256 = hashlib.sha256
marshalled = marshal.dumps
_type, _id, _map, _set, _len = type, id, map, set, len
_chained = itertools.chain.from_iterable


class _Walk:
    """All that one variable reaches.

    `numbers` are the objects that can be told apart from equal ones, in the order in which they were met; that is how
    an object is named when it is met again.
    """

    def __init__(self, value):
        self.numbers = {}
        self.kept = []
        self.needs = set()
        self.reason = None
        self.risky = False
        self._out = []
        self._walk(value)
        self.digest = _sha256(b"".join(self._out)).digest()
        self._out = None

    def _walk(self, value):
        # In order of a reader: what is pushed last is met first. Depth rides along.
        stack = [(value, 0)]
        emit, numbers = self._out.append, self.numbers
        while stack:
            value, depth = stack.pop()
            kind = _type(value)
            if kind in ATOMS:
                emit(marshalled(value, 2))
                continue
            if depth > DEPTH_MAX:
                raise Unkept(f"it nests deeper than {DEPTH_MAX} levels")
            if kind is tuple:
                if not self._emit_flat(b"(", value, value):
                    emit(b"(%d " % _len(value))
                    stack += [(part, depth + 1) for part in value[::-1]]
                continue
            if kind is frozenset:
                self._emit_set(b"F", value, depth)
                continue
            number = numbers.get(_id(value))
            if number is not None:
                emit(b"@%d " % number)
                continue
            if kind not in _PLAIN:
                made = reduced(value)
                if made is None or made[0] in REFERENCES:
                    emit(b"R" + marshalled(_reference(value) if made is None else (made[0].__name__, *made[1]), 2))
                    continue
            numbers[_id(value)] = _len(numbers)
            self.kept.append(value)
            if kind is list:
                if not (self._emit_flat(b"[", value, value) or self._emit_rows(value)):
                    emit(b"[%d " % _len(value))
                    stack += [(part, depth + 1) for part in value[::-1]]
            elif kind is dict:
                if not self._emit_flat(b"{", value, itertools.chain(value, value.values())):
                    emit(b"{%d " % _len(value))
                    for key, part in reversed(value.items()):
                        stack.append((part, depth + 1))
                        stack.append((key, depth + 1))
                        self._note_key(key)
            elif kind is set:
                self._emit_set(b"S", value, depth)
            else:
                self._push_parts(value, kind, made, stack, depth)

    def _emit_flat(self, mark, value, parts):
        """Whether all parts are atoms, which the interpreter writes at once and always alike."""
        if not ATOMS.issuperset(_map(_type, parts)):
            return False
        self._out.append(mark)
        self._out.append(marshalled(value, 2))
        return True

    def _emit_rows(self, rows):
        """A list of lists, or of dicts, of atoms, each met for the first time: most tables are."""
        kinds = _set(_map(_type, rows))
        if kinds != {list} and kinds != {dict}:
            return False
        cells = _chained(rows)
        if kinds == {dict}:
            cells = itertools.chain(cells, _chained(_map(dict.values, rows)))
        if not ATOMS.issuperset(_map(_type, cells)):
            return False
        ids = list(_map(_id, rows))
        if _len(_set(ids)) != _len(ids) or not self.numbers.keys().isdisjoint(ids):
            return False
        self.numbers.update(zip(ids, itertools.count(_len(self.numbers))))
        self._out.append(b"T")
        self._out.append(marshalled(rows, 2))
        return True

    def _emit_set(self, mark, value, depth):
        if self._emit_flat(mark, value, value):
            return
        self._out.append(mark + b"%d " % _len(value))
        walks = []
        for part in value:
            self._note_key(part)
            walk = _Walk(part)
            self.needs |= walk.needs
            self.risky |= walk.risky
            walks.append((walk.digest, _len(walks), part, walk.numbers))
        walks.sort()
        for digest, _, part, numbers in walks:
            self._out.append(digest)
            if numbers:
                self._walk(part)

    def _note_key(self, key):
        if type(key) not in ATOMS and type(key) is not tuple:
            self.risky = True

    def _push_parts(self, value, kind, made, stack, depth):
        emit = self._out.append
        if kind is types.FunctionType:
            _add_names(value.__code__, self.needs)
        if kind is types.CodeType:
            emit(b"C" + marshalled(_comparable(value), 2))
            return
        if made[0] is make_raw:
            emit(b"I")
            fields, slots, items = made[2]
            self.kept.append(items)
            stack += [(items, depth + 1), (slots, depth + 1), (fields, depth + 1), (made[1][2], depth + 1), (kind, depth + 1)]
            return
        if kind not in _SAFE:
            self.risky = True
        parts = [*made[:5], None, None, None][:5]
        parts[3:] = [None if part is None else list(part) for part in parts[3:]]
        self.kept.append(parts)
        emit(b"O")
        stack += [(part, depth + 1) for part in parts[::-1]]


_PLAIN = frozenset([list, dict, set])


def _reference(value):
    """What is found in a module, by its names."""
    if is_class(value):
        return (module_of(value), qualname_of(value))
    name = getattr(value, "__qualname__", None)
    if type(name) is not str:
        name = str(value.__reduce_ex__(4))
    return (str(getattr(value, "__module__", "")), name)


# What is made again by code that is not the step's.
_SAFE = frozenset([types.FunctionType, type, abc.ABCMeta, enum.EnumType, Cell, types.MethodType, property, staticmethod,
                   classmethod])  # fmt: skip


def _comparable(code):
    """Code as what marshal takes."""
    return flat_code(code, _comparable_constant)


def _comparable_constant(part):
    kind = type(part)
    if kind is types.CodeType:
        return ("code", _comparable(part))
    if kind is tuple:
        return ("tuple", *map(_comparable_constant, part))
    if kind is frozenset:
        return ("set", *sorted(map(repr, part)))
    return part if kind in (str, bytes) else (kind.__name__, repr(part))


def _add_names(code, names):
    names.update(code.co_names)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            _add_names(constant, names)


class _Opaque:
    """What a variable reaches that cannot be kept: enough to tell with which others it shares."""

    OBJECTS_MAX = 200_000

    def __init__(self, value, reason):
        self.numbers, self.kept, self.needs, self.reason, self.risky = {}, [], set(), reason, False
        self.digest = None
        stack = [value]
        while stack and len(self.kept) < self.OBJECTS_MAX:
            value = stack.pop()
            if id(value) in self.numbers or id(value) in image or _is_elsewhere(value):
                continue
            if type(value) not in (tuple, frozenset, types.CodeType):
                self.numbers[id(value)] = len(self.numbers)
            self.kept.append(value)
            stack.extend(referents(value))


def _is_elsewhere(value):
    """Whether a value is no variable's: an atom, or of a module."""
    kind = type(value)
    try:
        if kind in ATOMS or value is current.namespace or types.ModuleType in mro_of(kind) or id(value) in known:
            return True
        if kind is types.FunctionType:
            return by_reference(value, value.__qualname__)
        return is_class(value) and not is_of_step(value)
    except Exception:
        return False


def _walk(value):
    try:
        return _Walk(value)
    except Unkept as unkept:
        return _Opaque(value, str(unkept))
    except Exception as error:
        return _Opaque(value, f"{type(error).__name__}: {text_of(error, 200)}")


class Captured:
    """The groups that variables make, with their digests."""

    def __init__(self, roots):
        walks = {name: _walk(roots[name]) for name in sorted(roots)}
        group_of, owner = {}, {}
        for name, walk in walks.items():
            mine = group_of[name] = [name]
            for other in {owner[key] for key in owner.keys() & walk.numbers.keys()}:
                theirs = group_of[other]
                if theirs is not mine:
                    mine += theirs
                    for part in theirs:
                        group_of[part] = mine
            owner.update(dict.fromkeys(walk.numbers, name))
        self.walks = walks
        self.groups = {}
        for names in {id(names): names for names in group_of.values()}.values():
            self.groups[tuple(sorted(names))] = self._digest(sorted(names))

    def _digest(self, names):
        """None for a group that cannot be kept."""
        walks = self.walks
        if any(walks[name].reason for name in names):
            return None
        if len(names) == 1:
            return walks[names[0]].digest.hex()
        first, shared = {}, []
        for name in names:
            for key in first.keys() & walks[name].numbers.keys():
                shared.append((name, walks[name].numbers[key], *first[key]))
            for key, number in walks[name].numbers.items():
                first.setdefault(key, (name, number))
        shared.sort()
        parts = [(name, walks[name].digest) for name in names]
        return _sha256(marshal.dumps((parts, shared), 2)).hexdigest()

    def reason(self, names):
        return next(self.walks[name].reason for name in names if self.walks[name].reason)
