"""What stands in a judge for what the work has: objects, modules, and errors.

Whatever is done with one is asked of the work and answered with data. What would let the work decide a comparison (`==`,
`<`, `in`, truth, a hash, a type) raises `NotApart`. An error of the work is one of the judge's own classes, made from its
name and its arguments, so that a check can expect it. The work chooses every name and number here: none is looked up
anywhere but among what it has itself, the language's errors and the library's.
"""

import builtins
import linecache
import operator
import sys
import types

from longhaul_wire import Broken, expect

NAME_CHARACTERS_MAX, WHY_CHARACTERS_MAX = 200, 300
FRAMES_MAX = 20
LINES_MAX = 20_000


class NotApart(BaseException):
    """The check has to be judged beside the work. Not an Exception; and one that a check swallows counts, too."""

    # The first of all.
    why = None

    def __init__(self, why):
        super().__init__(why)
        NotApart.why = NotApart.why or why[:WHY_CHARACTERS_MAX]


class Gone(BaseException):
    """The work has ended."""


# Asks the work. The judge sets it, and passes the numbers on of objects that nobody here holds any more.
ask = None
dropped = []


def _refuse(what):
    def refuse(*_):
        raise NotApart(f"it {what} an object of the work")

    return refuse


# Attributes of the language's own that say nothing which a check would compare by.
_DUNDERS = frozenset(
    "__all__ __annotations__ __author__ __call__ __defaults__ __doc__ __enter__ __exit__ __file__ __getitem__ __iter__ "
    "__len__ __module__ __name__ __next__ __qualname__ __repr__ __str__ __version__".split()
)

# Methods of texts, sets and numbers that compare. A check that calls one expects such a value, and no object.
_COMPARING = frozenset(
    name
    for kind in (str, bytes, set, frozenset, int, float, list, dict)
    for name in dir(kind)
    if name.startswith(("is", "starts", "ends", "remove"))
    and name != "remove"
    or name in ("difference", "index", "intersection", "rfind", "rindex", "symmetric_difference", "union")
)


class Object:
    """An object of the work, under its number. `_raw` is what one holds that compares by it, in a tuple."""

    __slots__ = ("_number", "_raw", "__weakref__")

    def __getattribute__(self, name):
        if _is_dunder(name) and name not in _DUNDERS:
            raise NotApart(f"it asks for `{name}` of an object of the work")
        if name in _COMPARING:
            raise NotApart(f"it calls `{name}` of an object of the work")
        return ask("get", self, name)

    def __setattr__(self, name, value):
        ask("set", self, name, value)

    def __delattr__(self, name):
        ask("delete", self, name)

    def __del__(self):
        dropped.append(_number(self))

    def __len__(self):
        return _exactly(int, ask("len", self))

    def __exit__(self, kind, error, _):
        return leave(self, error)

    __bool__ = _refuse("asks for the truth of")
    __hash__ = _refuse("asks for the hash of")
    __contains__ = _refuse("looks for something in")
    __instancecheck__ = __subclasscheck__ = _refuse("compares a type with")
    __mro_entries__ = _refuse("makes a class of")
    __await__ = __aiter__ = __anext__ = __aenter__ = __aexit__ = _refuse("waits for")
    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse("copies")


class Function(Object):
    """One that can be called."""

    __slots__ = ()

    def __call__(self, /, *arguments, **named):
        return ask("call", self, arguments, tuple(named.items()))


_number, _raw = (Object.__dict__[name].__get__ for name in ("_number", "_raw"))


def _exactly(kind, value):
    if type(value) is not kind:
        raise NotApart(f"the work answers with another type than `{kind.__name__}`")
    return value


def _define():
    """The operators: by what is asked, the name of the method."""
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Object, f"__{name}__", lambda self, other, *, _name=name: _compared(_name, self, other))
    for name in ("str", "repr", "format", "bytes", "int", "float", "complex", "index"):
        kind = getattr(builtins, {"repr": "str", "format": "str", "index": "int"}.get(name, name))
        answer = lambda self, *rest, _name=name, _kind=kind: _exactly(_kind, ask(_name, self, *rest))
        setattr(Object, f"__{name}__", answer)
    own = {"getitem": "item", "setitem": "set_item", "delitem": "delete_item", "enter": "enter", "dir": "dir"}
    for name in ("iter", "next", "reversed", "round", "abs", "neg", "pos", "invert"):
        own[name] = name
    for name, operation in own.items():
        setattr(Object, f"__{name}__", lambda self, *rest, _name=operation: ask(_name, self, *rest))
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor divmod".split():
        operation = f"{name}_" if name in ("and", "or") else name
        setattr(Object, f"__{name}__", lambda self, other, *, _name=operation: _both(_name, self, other))
        setattr(Object, f"__r{name}__", _refuse("computes with a value and"))
        setattr(Object, f"__i{name}__", _refuse("changes by computing"))
    del Object.__idivmod__


def _compared(name, left, right):
    """By what the two hold, here."""
    left, right = (_raw(side) if type(side) in (Object, Function) else (side,) for side in (left, right))
    if not left or not right:
        raise NotApart("it compares an object of the work")
    return getattr(operator, name)(left[0], right[0])


def _both(name, left, right):
    """An operand that is not the work's may be what a check expects."""
    if type(right) not in (Object, Function):
        raise NotApart("it computes with a value and an object of the work")
    return ask(name, left, right)


_define()


def leave(manager, error):
    """The end of a block that the work manages. One that swallows an error would skip what comes behind it."""
    if error is not None and (isinstance(error, AssertionError) or not isinstance(error, Exception)):
        # The verdict, which is not the work's to hear.
        return False
    if ask("exit", manager, error) and error is not None:
        raise NotApart("an object of the work swallows an error")
    return False


def made(number, is_called, raw=()):
    """An object under its number, which no other has."""
    value = object.__new__(Function if is_called else Object)
    Object.__dict__["_number"].__set__(value, number)
    Object.__dict__["_raw"].__set__(value, raw)
    if number in dropped:
        dropped.remove(number)
    return value


class WorkModule(types.ModuleType):
    # A module of the work. What the import system keeps with one is here, and all else there.
    __doc__ = property(lambda self: ask("get", self, "__doc__"))

    def __init__(self, name, value):
        super().__init__(name)
        del self.__dict__["__doc__"]
        self.__dict__["_longhaul_object"] = value

    def __getattr__(self, name):
        if _is_dunder(name) and name not in _DUNDERS:
            raise AttributeError(name)
        return ask("get", self, name)

    def __setattr__(self, name, value):
        if type(value) is WorkModule or _is_dunder(name):
            self.__dict__[name] = value
        else:
            ask("set", self, name, value)

    def __delattr__(self, name):
        ask("delete", self, name)

    def __dir__(self):
        return ask("dir", self)


def _is_dunder(name):
    return name.startswith("__") and name.endswith("__")


class _Errors(type):
    # The class of classes that stand for errors of the work.
    __doc__ = property(lambda cls: ask("get", cls, "__doc__"))

    def __call__(cls, /, *arguments, **named):
        return ask("call", cls, arguments, tuple(named.items()))

    def __getattr__(cls, name):
        if _is_dunder(name):
            raise AttributeError(name)
        return ask("get", cls, name)

    def __new__(mcs, name, bases, fields):
        if "_longhaul_object" not in fields:
            raise NotApart("it makes a class of one of the work")
        return super().__new__(mcs, name, bases, fields)


def number_of(value):
    """The number of what stands for something of the work; none of anything else."""
    kind = type(value)
    if kind in (Object, Function):
        return _number(value)
    if kind is WorkModule or kind is _Errors:
        return _number(value.__dict__["_longhaul_object"])
    if type(kind) is _Errors:
        return _number(_fields_of(value)["_longhaul_object"])
    return None


FOREIGN = (Object, Function, WorkModule, _Errors)


# Errors.


def error_class(value, name, module, bases):
    """A class of errors that the work defines. `value` is what it is there."""
    # What is defined in the check itself is a test of it.
    module = module if module != "__main__" else "work"
    fields = {"__module__": module, "__qualname__": name, "_longhaul_object": value}
    fields.update(__str__=_told(0), __repr__=_told(1), __getattr__=_asked)
    return _Errors(name, bases, fields)


_fields_of = BaseException.__dict__["__dict__"].__get__


def _told(at):
    return lambda self: _exactly(str, _fields_of(self)["_longhaul_texts"][at])


def _asked(self, name):
    if _is_dunder(name):
        raise AttributeError(name)
    return ask("get", self, name)


def library_error(module, name):
    """An error of the library by its name; not one that ends a test."""
    found = sys.modules.get(module)
    kind = getattr(found, name, None) if type(found) is types.ModuleType else None
    is_hidden = module.partition(".")[0] in ("unittest", "pytest") or module.startswith("longhaul_")
    return _error(kind, is_hidden or getattr(kind, "__module__", None) != module, name)


def language_error(name):
    kind = getattr(builtins, name, None)
    return _error(kind, False, name)


def _error(kind, is_hidden, name):
    is_error = type(kind) is type and issubclass(kind, BaseException) and not issubclass(kind, BaseExceptionGroup)
    if is_hidden or not is_error:
        raise NotApart(f"the work raises `{name[:NAME_CHARACTERS_MAX]}`")
    return kind


def error_of(kind, value, args, texts, fields):
    """An error as the work has raised it. `value` is what it is there."""
    try:
        if type(kind) is _Errors:
            error = kind.__new__(kind, *args)
            error.__dict__.update(_longhaul_object=value, _longhaul_texts=texts)
            return error
        error = kind(*args) if kind.__module__ == "builtins" else kind.__new__(kind, *args)
        for name, field in fields:
            if name.isidentifier() and not name.startswith("_"):
                setattr(error, name, field)
    except Exception:
        raise NotApart(f"the work raises `{kind.__name__}` in a way of its own") from None
    return error


def frames_of(rows, top):
    """A traceback of where the work raised something, to show it. `top` is the directory of the work."""
    trace = None
    for row in reversed(expect(rows, list)[-FRAMES_MAX:]):
        if len(expect(row, list)) != 4:
            raise Broken("a frame that has not four parts")
        file, line, name, text = row
        file, name = (expect(part, str)[:NAME_CHARACTERS_MAX].replace("\0", "") for part in (file, name))
        file, line = file.encode("utf-8", "replace").decode(), expect(line, int)
        if not 0 < line < LINES_MAX:
            continue
        if file.startswith(top + "/"):
            _show(file, line, expect(text, str))
        trace = types.TracebackType(trace, _frame(file, name), -1, line)
    return trace


def _frame(file, name):
    code = compile("raise Exception", file, "exec").replace(co_name=name)
    try:
        exec(code, {})
    except Exception as error:
        return error.__traceback__.tb_next.tb_frame


def _show(file, line, text):
    lines = linecache.cache[file][2] if file in linecache.cache else []
    lines += ["\n"] * (line - len(lines))
    lines[line - 1] = text
    linecache.cache[file] = (0, None, lines, file)
