"""The function `serve` of the tool `python`: the work, which answers what the judge of a check asks of it over a pipe.

One request at a time: import a module, take an attribute, call. What crosses as plain data does, and everything else
stays here under a number. Nothing here judges, and nothing here can be trusted: the work shares this interpreter, so the
judge (`longhaul_apart.py`) takes what it is told for data and no more.
"""

import builtins
import importlib
import itertools
import linecache
import operator
import sys
import traceback

from longhaul_wire import Broken, Pipe, Unplain, Values, expect

FRAMES_MAX = 20
CAUSES_MAX = 3
_TEXT_CHARACTERS_MAX, _LINE_CHARACTERS_MAX = 20_000, 200


def serve(pipe, streams):
    """Answers until the judge has ended. `streams` take what the work prints."""
    server = _Server()
    while True:
        try:
            request = pipe.receive()
        except Broken:
            return
        if request is None:
            return
        try:
            answer = server.answer(request)
        except Exception as error:
            answer = {"no": str(error)[:500]}
        answer.update(n=request.get("n"), printed=[stream.take() for stream in streams])
        try:
            pipe.send(answer)
        except Unplain as error:
            pipe.send({"n": request.get("n"), "printed": ["", ""], "no": str(error)})


class _Server(Values):
    def __init__(self):
        super().__init__(1)
        # What is not plain, by number.
        self._objects, self._handles = {}, {}
        self._handle = itertools.count()
        # Modules of the library, where the judge finds the same.
        self._library = set(sys.modules)

    def answer(self, request):
        for number in request["forget"]:
            self.forget(number)
        for number in request["drop"]:
            self._handles.pop(id(self._objects.pop(number, None)), None)
        self.take(request["put"])
        operation, values = _OPERATIONS[request["op"]], [self.decode(value) for value in request["values"]]
        try:
            answer = {"value": self.encode(operation(*values))}
        except (Unplain, Broken):
            raise
        except BaseException as error:
            answer = {"raised": self._error(error)}
            # Its frames hold this one, which holds the values.
            values = error = None
        answer["put"] = self.changes()
        return answer

    def other(self, value):
        # Not by `isinstance`, which asks the value.
        if issubclass(type(value), type) and issubclass(value, BaseException):
            return self._class(value)
        is_awaited = hasattr(type(value), "__await__") or hasattr(type(value), "__aiter__")
        return ["object", self._handle_of(value), callable(value), is_awaited, self._raw(value)]

    def _raw(self, value):
        """Of a number, a text or a tuple of a class of its own that compares as any does: what it holds. None of others."""
        kind = type(value)
        for base, take in _RAW.items():
            if issubclass(kind, base):
                compares_so = all(getattr(kind, name) is getattr(base, name) for name in _COMPARISONS)
                return [self.encode(take(value))] if compares_so else []
        return []

    def _handle_of(self, value):
        number = self._handles.get(id(value))
        if number is None:
            number = next(self._handle)
            self._objects[number] = value
            self._handles[id(value)] = number
        return number

    def other_value(self, value):
        if value[0] == "object":
            return self._objects[value[1]]
        if value[0] == "builtin":
            return operator.attrgetter(value[1])(builtins)
        if value[0] == "error":
            _, kind, args = value
            return self.decode(kind)(*self.decode(args))
        return super().other_value(value)

    # Errors.

    def _error(self, error, depth=0):
        cause, context = error.__cause__, error.__context__
        args, fields = tuple(error.args), {**error.__dict__}
        if isinstance(error, OSError) and len(args) == 2 and error.filename is not None:
            # Which it leaves out of its arguments.
            args += (error.filename,) if error.filename2 is None else (error.filename, None, error.filename2)
        if isinstance(error, (ImportError, NameError, AttributeError)):
            fields["name"] = error.name
        further = depth < CAUSES_MAX
        return {
            "class": self._class(type(error)),
            "object": self._handle_of(error),
            "args": self.encode(args),
            "texts": [_text(str, error), _text(repr, error)],
            "fields": [[name, self.encode(value)] for name, value in fields.items() if not name.startswith("_")],
            "frames": _frames(error),
            "cause": self._error(cause, depth + 1) if cause is not None and further else None,
            "context": self._error(context, depth + 1) if context is not None and further else None,
            "suppress": error.__suppress_context__,
        }

    def _class(self, kind):
        """As the judge can find or make it: of the language, of the library, or one of the work under a number."""
        if getattr(builtins, kind.__name__, None) is kind:
            return ["builtin", kind.__name__]
        found = sys.modules.get(kind.__module__) if kind.__module__ in self._library else None
        if getattr(found, kind.__name__, None) is kind:
            return ["library", kind.__module__, kind.__name__]
        bases = [self._class(base) for base in kind.__bases__ if issubclass(base, BaseException)]
        return ["class", self._handle_of(kind), kind.__name__, str(kind.__module__), bases]


def _text(show, error):
    try:
        text = show(error)
    except Exception:
        return None
    return str.__str__(text) if len(text) <= _TEXT_CHARACTERS_MAX else None


def _frames(error):
    """Where it was raised, without the frames of this file: file, line, function and text each."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen ") and "/importlib/" not in file:
            found.append([file, line, frame.f_code.co_name, linecache.getline(file, line)[:_LINE_CHARACTERS_MAX]])
    return found[-FRAMES_MAX:]


_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")

_RAW = {
    int: int.__pos__,
    float: float.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
}


# What can be asked.


def _import(name, first, last):
    for places, at in ((first, 0), (last, len(sys.path))):
        new = [place for place in places if place not in sys.path]
        sys.path[at:at] = new
    module = importlib.import_module(name)
    return module, hasattr(module, "__path__"), getattr(module, "__file__", None)


def _exit(value, error):
    kind = None if error is None else type(error)
    return bool(type(value).__exit__(value, kind, error, None))


_OPERATIONS = {
    "import": _import,
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "call": lambda function, arguments, named: function(*arguments, **dict(named)),
    "item": operator.getitem,
    "set_item": operator.setitem,
    "delete_item": operator.delitem,
    "enter": lambda value: type(value).__enter__(value),
    "exit": _exit,
}
_OPERATIONS.update(
    (function.__name__, function)
    for function in (
        iter, next, reversed, len, dir, str, repr, format, bytes, int, float, complex, round, operator.index,
        operator.abs, operator.neg, operator.pos, operator.invert, operator.add, operator.sub, operator.mul,
        operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul, operator.lshift,
        operator.rshift, operator.and_, operator.or_, operator.xor, divmod,
    )
)  # fmt: skip
