"""The steps' globals, and what is noted of a step while it runs: what it looks up, and what it unbinds."""

import base64
import builtins
import dis
import functools
import sys
import types

from longhaul_digest import Captured
from longhaul_values import (
    BUILTINS,
    MAIN,
    REDUCERS,
    current,
    loaded,
    name_of,
    reduced_module,
    reduced_namespace,
    text_of,
)

# Characters of the name of a variable that is kept.
NAME_CHARACTERS_MAX = 500
_OWN = frozenset(
    """__builtins__ __name__ __doc__ __package__ __loader__ __spec__ __annotations__ __annotate__
    __conditional_annotations__ __warningregistry__""".split()
)
_builtins = vars(builtins)
_from_base64 = base64.b64decode


class ValueNotLoaded(Exception):
    """A value of an earlier step could not be made again."""


class Namespace(dict):
    """The steps' globals. Holds what was looked up or bound; the rest comes when it is looked up.

    Functions of steps look names up as this class is told to only while it defines `__missing__` and not
    `__getitem__`, which would cost a call each time. Builtins are put in once they were looked up, for the same
    reason; `_phantoms` says which, and they are taken out before anybody sees them.
    """

    def __missing__(self, name):
        state = current.state
        state.noted.add(name)
        if name in state.pending:
            return state.place(name)
        group = state.given.get(name)
        if group is not None and not group.loaded and name not in state.deleted:
            state.load(group)
            return state.place(name)
        if name in BUILTINS and name in _builtins:
            if name in ("exec", "eval"):
                self._see_all()
            if _looks_a_name_up(sys._getframe(1)):
                value = _builtins[name]
                state.phantoms[name] = value
                dict.__setitem__(self, name, value)
                return value
        raise KeyError(name)

    def _see_all(self):
        current.state.see_all()

    def __contains__(self, name):
        drop_phantoms(self)
        if dict.__contains__(self, name):
            return True
        try:
            self[name]
        except KeyError:
            return False
        return True

    def get(self, name, default=None):
        drop_phantoms(self)
        try:
            return self[name]
        except KeyError:
            return default

    def __delitem__(self, name):
        drop_phantoms(self)
        self[name]
        dict.__delitem__(self, name)
        current.state.deleted.add(name)

    def pop(self, name, *default):
        drop_phantoms(self)
        if name in self:
            current.state.deleted.add(name)
            return dict.pop(self, name)
        return dict.pop({}, name, *default)

    def setdefault(self, name, default=None):
        return self[name] if name in self else dict.setdefault(self, name, default)


def _seeing_all(method):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        self._see_all()
        return method(self, *args, **kwargs)

    return call


for _method in "__iter__ __len__ __eq__ __ne__ __or__ __ror__ __repr__ __reversed__ copy items keys values".split():
    setattr(Namespace, _method, _seeing_all(getattr(dict, _method)))


def _clear(self):
    for name in list(self):
        del self[name]


def _popitem(self):
    name = next(reversed(self), None)
    if name is None:
        raise KeyError("popitem(): dictionary is empty")
    return name, self.pop(name)


Namespace.clear, Namespace.popitem = _clear, _popitem


class Main(types.ModuleType):
    """`__main__`: the namespace as a module."""

    __dict__ = property(lambda self: current.namespace)

    def __getattr__(self, name):
        try:
            return current.namespace[name]
        except KeyError:
            raise AttributeError(f"module '__main__' has no attribute {name!r}") from None

    def __setattr__(self, name, value):
        current.namespace[name] = value

    def __delattr__(self, name):
        del current.namespace[name]

    def __dir__(self):
        return list(current.namespace)


_LOADS = {dis.opmap[name] for name in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS") if name in dis.opmap}


def _looks_a_name_up(frame):
    """Whether code reads a name, and not the namespace as a dict."""
    return frame.f_code.co_code[frame.f_lasti] in _LOADS


def drop_phantoms(namespace):
    phantoms = current.state.phantoms
    while phantoms:
        name, value = phantoms.popitem()
        if dict.get(namespace, name, phantoms) is value:
            dict.__delitem__(namespace, name)


class Group:
    """Variables that share objects, as they were given."""

    def __init__(self, fields):
        self.names, self.value = tuple(sorted(fields["names"])), fields.get("value")
        self.blob, self.loaded = fields["blob"], False


class State:
    """What is known of the step that runs."""

    def __init__(self, groups):
        self.namespace = Namespace(__name__=MAIN, __builtins__=builtins)
        self.given = {name: group for group in groups for name in group.names}
        # Digests as they were; of a group that lost variables to later ones, once it is loaded.
        self.before = {group.names: group.value for group in groups if group.value is not None}
        # Loaded and not looked up yet.
        self.pending = {}
        # Looked up, as it was loaded.
        self.placed = {}
        self.phantoms = {}
        self.noted = set()
        self.deleted = set()
        # Which variables were in one group with a loaded one.
        self.mates = {}
        self.all = False

    def load(self, group):
        group.loaded = True
        blob, group.blob = group.blob, None
        try:
            values = loaded(_from_base64(blob))
            values = {name: values[name] for name in group.names}
        except Exception as error:
            group.loaded, group.blob = False, blob
            names = ", ".join(group.names)[:200]
            raise ValueNotLoaded(f"`{names}`: {name_of(type(error))}: {text_of(error, 200)}") from None
        groups = {group.names: group.value} if group.value is not None else Captured(values).groups
        self.before.update(groups)
        self.mates.update((name, names) for names in groups for name in names)
        for name, value in values.items():
            # What a step before bound or unbound stays so.
            if name not in self.deleted and self.given.get(name) is group:
                self.pending[name] = value

    def place(self, name):
        value = self.placed[name] = self.pending.pop(name)
        dict.__setitem__(self.namespace, name, value)
        return value

    def see_all(self):
        drop_phantoms(self.namespace)
        if self.all:
            return
        self.all = True
        for name, group in self.given.items():
            # What the step bound or unbound itself stays so.
            if not (group.loaded or name in self.deleted or dict.__contains__(self.namespace, name)):
                self.load(group)
        for name in [*self.pending]:
            if dict.__contains__(self.namespace, name):
                del self.pending[name]
            else:
                self.place(name)

    def look_anew(self):
        """What comes is another step: notes of the last are dropped, and every value is noted when it is looked up."""
        roots = self.roots()
        self.pending = roots
        own = {name: value for name, value in dict.items(self.namespace) if name not in roots}
        dict.clear(self.namespace)
        dict.update(self.namespace, own)
        self.noted, self.all, self.placed = set(), False, {}
        self.before = {names: value for names, value in self.before.items() if not self._is_known(names)}
        taken = roots.keys() | self.deleted
        self.given = {name: group for name, group in self.given.items() if name not in taken}
        self.deleted = set()

    def is_untouched(self, name):
        """Whether a variable is loaded, and the step neither looked it up nor bound it."""
        return name in self.pending and not dict.__contains__(self.namespace, name)

    def is_rebound(self, name):
        """Whether the step bound a variable, to something else than what was loaded."""
        value = dict.get(self.namespace, name, self)
        return value is not self and value is not self.placed.get(name, self)

    def _is_known(self, names):
        return any(name in self.pending or name in self.deleted or self.given[name].loaded for name in names)

    def roots(self):
        """Every variable whose value may have changed."""
        drop_phantoms(self.namespace)
        kept = {name: value for name, value in dict.items(self.namespace) if is_variable(name)}
        return {name: value for name, value in self.pending.items() if name not in kept} | kept
def is_variable(name):
    return type(name) is str and name not in _OWN and name.isidentifier() and len(name) <= NAME_CHARACTERS_MAX


REDUCERS[Namespace] = reduced_namespace
REDUCERS[Main] = reduced_module
