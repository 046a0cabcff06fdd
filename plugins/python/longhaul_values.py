"""How values of steps are kept: what makes them again, for the pickler and for the digest alike.

Functions and classes of steps are kept by what they are, those of modules by name, and objects of classes that steps
made as they lie in memory, past anything that the classes say about it: so keeping a value runs none of the step's code,
but for what the objects of the library do. A function's globals are the namespace of whoever loads it.
"""

import abc
import builtins
import copyreg
import dis
import functools
import gc
import io
import pickle
import sys
import types
import weakref

MAIN = "__main__"
MESSAGE_CHARACTERS_MAX = 4_000

# The step that runs: its `state` and its `namespace`.
current = types.SimpleNamespace(state=None, namespace=None)

# Kept before any step runs, which may put something else in their places.
_BytesIO, referents = io.BytesIO, gc.get_referents
BUILTINS = dict(vars(builtins))


class Unkept(Exception):
    """Why a value cannot be kept."""


_NONE = type(None)
ATOMS = frozenset([int, float, complex, str, bytes, bool, _NONE, type(...)])
Cell = types.CellType
_ITERATORS = tuple(type(iter(view)) for view in ({}, {}.values(), {}.items(), set()))
_LIVE = {
    types.GeneratorType: "a generator",
    types.CoroutineType: "a coroutine",
    types.AsyncGeneratorType: "an asynchronous generator",
    types.FrameType: "a frame",
    types.TracebackType: "a traceback",
    memoryview: "a memoryview",
    weakref.ref: "a weak reference",
    **{kind: "an iterator over a dict or a set" for kind in _ITERATORS},
}
_TYPE_DICT = type.__dict__["__dict__"].__get__
mro_of = type.__dict__["__mro__"].__get__
_IS_HEAP_TYPE = 1 << 9
_DROPPED = frozenset(
    """__dict__ __weakref__ __module__ __qualname__ __slots__ __slotnames__ __annotations_cache__ _abc_impl""".split()
)
# Set on a class that is there they would change the class and not what it defines.
_OF_TYPES = frozenset("__class__ __mro__ __bases__ __base__ __name__ __basicsize__ __itemsize__ __flags__".split())
_RAW = {
    list: lambda value: list.__getitem__(value, slice(None)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set.__or__(set(), value),
    frozenset: lambda value: frozenset.__or__(frozenset(), value),
    int: lambda value: int.__add__(value, 0),
    float: float.__float__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
}


qualname_of, module_of = type.__dict__["__qualname__"].__get__, type.__dict__["__module__"].__get__
_NAME, _BASES = type.__dict__["__name__"].__get__, type.__dict__["__bases__"].__get__


def is_class(value):
    """As `isinstance`, which objects can lie to."""
    return type in mro_of(type(value))


def by_reference(value, name):
    """Whether a module has the value under this name, so that it is found there again."""
    module = module_of(value) if is_class(value) else getattr(value, "__module__", None)
    if not isinstance(module, str) or module == MAIN:
        return False
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def is_of_step(kind):
    return not by_reference(kind, qualname_of(kind))


@functools.lru_cache(maxsize=10_000)
def _raw_base(kind):
    """The builtin type below a class that steps made; none where something else is below it, or no step made it."""
    if not is_of_step(kind):
        return None
    base = object
    for part in mro_of(kind):
        if part in _RAW:
            base = part
        elif part is not object and "__firstlineno__" not in _TYPE_DICT(part):
            return None
    return base


def reduced(value):
    """What makes a value again, as `__reduce__` has it; none for what the pickler knows by itself.

    Objects of classes that steps made are taken as they lie in memory, past anything that the classes say about it.
    """
    kind = type(value)
    if kind in ATOMS:
        return None
    member = known.get(id(value))
    if member is not None:
        return _member_of, member
    if kind is types.FunctionType:
        return None if by_reference(value, value.__qualname__) else _reduced_function(value)
    if is_class(value):
        return _reduced_class(value) if is_of_step(value) else None
    make = REDUCERS.get(kind) or _dispatch.get(kind)
    if make is not None:
        return make(value)
    if kind in _LIVE:
        return _reduced_live(value)
    if BaseException in mro_of(kind):
        return _reduced_exception(value)
    base = _raw_base(kind)
    if base is not None:
        return _reduced_raw(value, kind, base)
    made = value.__reduce_ex__(4)
    if isinstance(made, str):
        if not (by_reference(value, made) or BUILTINS.get(made) is value):
            raise Unkept(f"`{made[:80]}` is in no module")
        return None
    return made


def _reduced_live(value):
    raise Unkept(f"it holds {_LIVE[type(value)]}")


def _reduced_cached(value):
    """With what it keeps, when it keeps all. How often it was asked is not kept."""
    limits = value.cache_parameters()
    size, kept = limits["maxsize"], _cache_of(value)
    if size and kept:
        raise Unkept("it holds a function with a cache of limited size")
    args = (value.__wrapped__, size, limits["typed"])
    return _cached, args, (value.__dict__, [*kept.items()]), None, None, _set_cached


def _cache_of(value):
    fields = value.__dict__
    return next((part for part in referents(value) if type(part) is dict and part is not fields), {})


def _cached(function, size, typed):
    return functools.lru_cache(size, typed)(function)


def _set_cached(value, state):
    fields, kept = state
    value.__dict__.update(fields)
    if kept:
        _cache_of(value).update(kept)


def reduced_namespace(value):
    """Whoever loads it has one."""
    return _the_namespace, ()


def _the_namespace():
    return current.namespace


def reduced_module(value):
    name = value.__name__
    if sys.modules.get(name) is not value:
        raise Unkept(f"the module `{name[:80]}` cannot be imported")
    return _module, (name,)


def _module(name):
    if name == MAIN:
        return sys.modules[MAIN]
    __import__(name)
    return sys.modules[name]


def _reduced_code(value):
    flatten = lambda part: (_Code, flat_code(part, flatten)) if type(part) is types.CodeType else part
    return _code, (flat_code(value, flatten),)


def flat_code(code, flatten):
    constants = tuple(map(flatten, code.co_consts))
    return (
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
        code.co_flags, code.co_code, constants, code.co_names, code.co_varnames, code.co_filename, code.co_name,
        code.co_qualname, code.co_firstlineno, code.co_linetable, code.co_exceptiontable, code.co_freevars,
        code.co_cellvars,
    )  # fmt: skip


class _Code:
    """Marks code among constants."""


def _code(parts):
    constants = tuple(
        _code(part[1]) if type(part) is tuple and len(part) == 2 and part[0] is _Code else part for part in parts[7]
    )
    return types.CodeType(*parts[:7], constants, *parts[8:])


def _reduced_function(value):
    cells = value.__closure__ or ()
    contents = [(cell, _content(cell, name)) for cell, name in zip(cells, value.__code__.co_freevars)]
    _cells_of_functions.update((id(cell), cell) for cell in cells)
    notes = getattr(value, "__annotate__", None)
    if notes is None:
        notes = value.__annotations__ or None
    state = (
        value.__defaults__, value.__kwdefaults__, value.__dict__, value.__doc__, value.__module__, value.__qualname__,
        notes, getattr(value, "__type_params__", ()), contents,
    )  # fmt: skip
    names = _globals_of(value)
    return _function, (value.__code__, names, value.__name__, cells), state, None, None, _set_function


def _globals_of(function):
    """The namespace that a function looks names up in; of a module, its name."""
    names = function.__globals__
    module = dict.get(names, "__name__")
    if isinstance(module, str) and module != MAIN and _dict_of(sys.modules.get(module)) is names:
        return module
    return names


def _dict_of(module):
    return module.__dict__ if isinstance(module, types.ModuleType) else None


def _function(code, names, name, cells):
    if isinstance(names, str):
        names = _module(names).__dict__
    made = types.FunctionType(code, names, name, None, cells or None)
    if names is current.namespace:
        touch_of_code(code)
    return made


def _set_function(function, state):
    (function.__defaults__, function.__kwdefaults__, fields, function.__doc__, function.__module__,
     function.__qualname__, notes, parameters, contents) = state  # fmt: skip
    # Python 3.11 has none.
    if parameters:
        function.__type_params__ = parameters
    function.__dict__.update(fields)
    if type(notes) is dict:
        function.__annotations__ = notes
    elif notes is not None:
        function.__annotate__ = notes
    for cell, content in contents:
        if content:
            cell.cell_contents = _fields_of_class(content[1]) if len(content) == 2 else content[0]


_cells_of_functions = {}


def _content(cell, name):
    """What a cell holds. Annotations hold the fields of their class, which are its own and nothing that is copied."""
    try:
        content = cell.cell_contents
    except ValueError:
        return ()
    if name == "__classdict__" and type(content) is dict:
        kind = next((kind for kind in gc.get_referrers(content) if is_class(kind) and _fields_of_class(kind) is content), None)
        if kind is not None:
            return (None, kind)
    return (content,)


def _fields_of_class(kind):
    return referents(_TYPE_DICT(kind))[0]


def _reduced_cell(value):
    if id(value) not in _cells_of_functions:
        raise Unkept("it holds a cell without its function")
    return _cell, ()


def _cell():
    return Cell()


def _reduced_method(value):
    return types.MethodType, (value.__func__, value.__self__)


def _reduced_property(value):
    return property, (value.fget, value.fset, value.fdel, value.__doc__)


def _reduced_wrapper(value):
    return type(value), (value.__func__,)


def _reduced_class(kind):
    if not type.__dict__["__flags__"].__get__(kind) & _IS_HEAP_TYPE:
        raise Unkept(f"the class `{name_of(kind)}` is in no module")
    fields = {**_TYPE_DICT(kind)}
    slots = fields.get("__slots__")
    slot_names = _slot_names(kind, fields)
    state = {
        name: fields[name]
        for name in sorted(fields)
        if name not in _DROPPED and name not in _OF_TYPES and name not in slot_names and type(fields[name]) is not types.GetSetDescriptorType
    }
    registered = ()
    if abc.ABCMeta in mro_of(type(kind)):
        registered = tuple(entry() for entry in abc._get_dump(kind)[0])
    head = {name: fields[name] for name in sorted(_OF_TYPES & fields.keys())}
    head.update(__module__=module_of(kind), __qualname__=qualname_of(kind))
    if slots is not None:
        head["__slots__"] = slots if type(slots) is str else tuple(slots)
    return _class, (type(kind), _NAME(kind), _BASES(kind), head), (state, registered), None, None, _set_class


def _slot_names(kind, fields):
    return {name for name, field in fields.items() if type(field) is types.MemberDescriptorType}


def _class(meta, name, bases, head):
    """The class without what it defines. Nobody is told of it: its metaclass and its bases were when it was first made."""
    told = {part for base in bases for part in mro_of(base) if "__init_subclass__" in _TYPE_DICT(part)} - {object}
    tellers = [(part, _TYPE_DICT(part)["__init_subclass__"]) for part in told]
    try:
        for part, _ in tellers:
            type.__setattr__(part, "__init_subclass__", _TELLS_NOBODY)
        return type.__new__(meta, name, bases, dict(head))
    finally:
        for part, teller in tellers:
            type.__setattr__(part, "__init_subclass__", teller)


_TELLS_NOBODY = classmethod(lambda kind, **_: None)


def _set_class(kind, state):
    fields, registered = state
    for name, value in fields.items():
        type.__setattr__(kind, name, value)
    if abc.ABCMeta in mro_of(type(kind)):
        abc._abc_init(kind)
        for other in registered:
            if other is not None:
                abc._abc_register(kind, other)


def _slots_of(value, kind):
    """The slots that are filled, by class and name."""
    slots = _slots_in(kind)
    if not slots:
        return ()
    found = []
    for place, name, field in slots:
        try:
            found.append((place, name, field.__get__(value)))
        except AttributeError:
            pass
    return tuple(found)


@functools.lru_cache(maxsize=10_000)
def _slots_in(kind):
    return tuple(
        (place, name, field)
        for place, part in enumerate(mro_of(kind))
        if "__firstlineno__" in _TYPE_DICT(part)
        for name, field in _TYPE_DICT(part).items()
        if type(field) is types.MemberDescriptorType
    )


def _fields_of(value):
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _reduced_raw(value, kind, base):
    raw = None if base is object else _RAW[base](value)
    state = (_fields_of(value), _slots_of(value, kind))
    if base in (list, set):
        return make_raw, (kind, base, None), (*state, raw), None, None, _set_raw
    if base is dict:
        return make_raw, (kind, base, None), (*state, list(raw.items())), None, None, _set_raw
    return make_raw, (kind, base, raw), (*state, None), None, None, _set_raw


def make_raw(kind, base, raw):
    return base.__new__(kind) if raw is None else base.__new__(kind, raw)


def _set_raw(value, state):
    fields, slots, items = state
    if fields:
        object.__getattribute__(value, "__dict__").update(fields)
    mro = mro_of(type(value))
    for place, name, content in slots:
        _TYPE_DICT(mro[place])[name].__set__(value, content)
    if items:
        if isinstance(value, list):
            list.extend(value, items)
        elif isinstance(value, set):
            set.update(value, items)
        else:
            dict.update(value, items)


def _reduced_exception(value):
    """Without its traceback, which is frames."""
    kind = type(value)
    if is_of_step(kind):
        function, args, fields = _exception, (kind, value.args), _fields_of(value) or None
    else:
        function, args, fields = (*value.__reduce_ex__(4), None)[:3]
    links = (value.__cause__, value.__context__, value.__suppress_context__)
    return function, args, (fields, links, _slots_of(value, kind)), None, None, _set_exception


def _exception(kind, args):
    made = kind.__new__(kind, *args)
    made.args = args
    return made


def _set_exception(value, state):
    fields, (value.__cause__, value.__context__, value.__suppress_context__), slots = state
    if fields and is_of_step(type(value)):
        object.__getattribute__(value, "__dict__").update(fields)
    elif fields:
        value.__setstate__(fields)
    mro = mro_of(type(value))
    for place, name, content in slots:
        _TYPE_DICT(mro[place])[name].__set__(value, content)


def _member_of(module, name):
    return sys.modules[module].__dict__[name]


_dispatch = dict(copyreg.dispatch_table)
REFERENCES = frozenset([_module, _member_of, _the_namespace])
REDUCERS = {
    types.MappingProxyType: lambda value: (types.MappingProxyType, (dict(value),)),
    types.ModuleType: reduced_module,
    types.CodeType: _reduced_code,
    Cell: _reduced_cell,
    types.MethodType: _reduced_method,
    functools._lru_cache_wrapper: _reduced_cached,
    property: _reduced_property,
    staticmethod: _reduced_wrapper,
    classmethod: _reduced_wrapper,
}


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        made = reduced(value)
        return NotImplemented if made is None else made


_Unpickler = pickle.Unpickler


def loaded(blob):
    """What was pickled."""
    return _Unpickler(_BytesIO(blob)).load()


def pickled(values):
    out = _BytesIO()
    _Pickler(out, 5).dump(values)
    return out.getvalue()


def touch_of_code(code, seen=None):
    """Looks names up ahead where the interpreter would not ask the namespace: in bodies of classes, and for `del` of a
    global in a function."""
    for name in names_past_the_namespace(code):
        try:
            current.namespace[name]
        except KeyError:
            pass


@functools.lru_cache(maxsize=1_000)
def names_past_the_namespace(code):
    found = set()
    is_body = not code.co_flags & 1 and code.co_name != "<module>"
    load, delete = dis.opmap["LOAD_NAME"], dis.opmap["DELETE_GLOBAL"]
    text, argument = code.co_code, 0
    if is_body or delete in text[::2]:
        for at in range(0, len(text), 2):
            argument |= text[at + 1]
            if text[at] == dis.EXTENDED_ARG:
                argument <<= 8
                continue
            if (is_body and text[at] == load) or text[at] == delete:
                found.add(code.co_names[argument])
            argument = 0
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            found |= names_past_the_namespace(constant)
    return frozenset(found)


# What can be said of anything.


def name_of(kind):
    return clean(type.__dict__["__name__"].__get__(kind)[:200])


def text_of(error, characters_max=MESSAGE_CHARACTERS_MAX):
    try:
        return clean(str(error)[:characters_max])
    except BaseException:
        return "(it cannot be shown)"


def clean(text):
    """Without what UTF-8 cannot write."""
    return str.encode(text, "utf-8", "replace").decode()


# Objects that modules have under a name and that are no classes or functions: sentinels, registries, generators of
# random numbers. A value that is one of them is found there again. They are held, so that no other gets their `id`.


known, held = {}, []


def remember(value, module, name):
    held.append(value)
    known.setdefault(id(value), (module, name))


def _remember_modules():
    unknown = {*ATOMS, tuple, frozenset, list, dict, set, types.FunctionType, types.BuiltinFunctionType}
    for module_name, module in sorted(sys.modules.items()):
        if module_name in (MAIN, __name__, "app") or not isinstance(module, types.ModuleType):
            continue
        for name, value in [*vars(module).items()]:
            is_class = isinstance(value, type)
            if type(value) in unknown or isinstance(value, types.ModuleType):
                continue
            if not is_class or not by_reference(value, value.__qualname__):
                remember(value, module_name, name)


_remember_modules()
image = {id(module.__dict__) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)}
