"""From the classes of this package to those that `componentize-py` generates, and back.

The generator makes the package `wit_world` anew for each world, with the interfaces of that world
alone. So each one is imported where it exists, when the component is built, and asking for another
is a FailedError. What does not fit the contract is a TypeError or a ValueError here, since past this
file it would end the component without a message.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Union

from . import _host, errors, jsontext
from ._records import CASES, CLASSES, JSON_FIELDS, NAMES, OBJECT_FIELDS, OUTPUT_FIELDS

IMPORTS = """
message_types tool_types conversation tools checks delegate recall decisions progress artifact graph keyvalue clock
timer log
""".split()

ROLES = ("agent", "planner", "evaluator", "tool", "memory")

# `types` has a longer name in worlds where an interface of WASI is called `types` too.
TYPES = ("types", "longhaul_plugin_types")

U32_MAX = 2**32 - 1

_HALF_SURROGATE = re.compile("[\ud800-\udfff]")


class Bindings:
    """The generated bindings of the world that this component is built for."""

    def __init__(self) -> None:
        self.err: Any = importlib.import_module("componentize_py_types").Err
        self.exports: Any = importlib.import_module("wit_world.exports")
        found = {name: _module(f"wit_world.imports.{name}") for name in (*TYPES, *IMPORTS)}
        self.imports = {name: module for name, module in found.items() if module is not None}

        # The export of a world, and with it its role.
        self.roles = {name: module for name in ROLES if (module := _module(f"wit_world.exports.{name}"))}

    def type_named(self, name: str) -> Any:
        """A type of the contract, wherever it was generated."""
        modules = (*self.roles.values(), *self.imports.values())
        return next(getattr(module, name) for module in modules if hasattr(module, name))

    # The backend of `_host`.

    def call(self, interface: str, function: str, *arguments: Any) -> Any:
        imported = getattr(self._import(interface), function)
        hints = list(imported.__annotations__.items())
        where = f"`{interface}.{function}`"
        lowered = [lower(value, hint, f"`{name}` of {where}") for value, (name, hint) in zip(arguments, hints)]
        return self._ask(imported, *lowered)

    def open_conversation(self, system: str) -> _host.RawConversation:
        conversation = self._import("conversation")
        return _Conversation(self, conversation.Conversation(lower(system, str, "`system` of a conversation")))

    def _import(self, interface: str) -> Any:
        if interface not in self.imports:
            raise errors.FailedError(f"a plugin of this kind has no `{interface}`; see the table of worlds")
        return self.imports[interface]

    def _ask(self, imported: Callable[..., Any], *lowered: Any) -> Any:
        try:
            answer = imported(*lowered)
        except self.err as error:
            raise lift_error(error.value) from None
        return lift(answer)


class _Conversation:
    """The resource, with the classes of this package."""

    def __init__(self, bindings: Bindings, raw: Any) -> None:
        self._bindings = bindings
        self._raw = raw

    def push(self, message: Any, pinned: bool) -> None:
        self._call("push", message, pinned)

    def complete(self, options: Any) -> Any:
        return self._call("complete", options)

    def usage(self) -> Any:
        return self._call("usage")

    def reset(self, summary: str) -> None:
        self._call("reset", summary)

    def _call(self, name: str, *arguments: Any) -> Any:
        method = getattr(self._raw, name)
        # The class has the hints, the bound method may not.
        hints = getattr(type(self._raw), name).__annotations__
        where = f"`conversation.{name}`"
        pairs = zip(arguments, [(name, hint) for name, hint in hints.items() if name != "return"])
        return self._bindings._ask(method, *[lower(value, hint, f"`{name}` of {where}") for value, (name, hint) in pairs])


def load() -> Bindings | None:
    """None outside of a component."""
    try:
        importlib.import_module("wit_world")
    except ImportError:
        return None
    return Bindings()


# To the host.


def lower(value: Any, hint: Any, where: str) -> Any:
    """`value` as the generated type `hint`; `where` is what it is called in an error."""
    return _lowerer(hint)(value, where)


@functools.cache
def _lowerer(hint: Any) -> Callable[[Any, str], Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is list:
        return functools.partial(_lower_list, _lowerer(arguments[0]))
    if origin in (Union, types.UnionType):
        if types.NoneType in arguments:
            inner = _lowerer(next(one for one in arguments if one is not types.NoneType))
            return lambda value, where: None if value is None else inner(value, where)
        return functools.partial(_lower_variant, {case.__name__: case for case in arguments})
    if issubclass(hint, enum.Enum):
        return functools.partial(_lower_enum, hint)
    return functools.partial(_lower_record, hint)


def _lower_text(value: Any, where: str) -> str:
    _expect(isinstance(value, str), value, where, "a text")
    # Half of a surrogate pair is a text in Python and nowhere else.
    return value if value.isascii() else _HALF_SURROGATE.sub("\ufffd", value)


def _lower_u32(value: Any, where: str) -> int:
    _expect(isinstance(value, int) and not isinstance(value, bool), value, where, "a whole number")
    if not 0 <= value <= U32_MAX:
        raise ValueError(f"{where} must be from 0 to {U32_MAX}, and is {jsontext.cut(str(value), 40)}")
    return int(value)


def _lower_float(value: Any, where: str) -> float:
    _expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, where, "a number")
    return float(value)


def _lower_bool(value: Any, where: str) -> bool:
    _expect(isinstance(value, bool), value, where, "a boolean")
    return bool(value)


def _lower_bytes(value: Any, where: str) -> bytes:
    _expect(isinstance(value, (bytes, bytearray, memoryview)), value, where, "bytes")
    return bytes(value)


def _lower_none(value: Any, where: str) -> None:
    _expect(value is None, value, where, "None")


def _lower_list(item: Callable[[Any, str], Any], value: Any, where: str) -> list[Any]:
    _expect(isinstance(value, (list, tuple)), value, where, "a list")
    return [item(one, f"an entry of {where}") for one in value]


def _lower_variant(members: dict[str, type], value: Any, where: str) -> Any:
    variant = next(iter(members)).partition("_")[0]
    if variant in CASES:
        case, payload = CASES[variant](value)
        name = f"{variant}_{case}"
    else:
        name = NAMES.get(type(value), "")
        payload = _fields(value) if name in members else ()
    _expect(name in members, value, where, f"one of {', '.join(member.partition('_')[2] for member in members)}")
    return _made(members[name], payload, where)


def _lower_enum(generated: type[enum.Enum], value: Any, where: str) -> Any:
    own = CLASSES[generated.__name__]
    if not isinstance(value, own):
        words = ", ".join(member.name for member in generated)
        _expect(False, value, where, f"{own.__name__}, one of {words}")
    return generated[value.name]


def _lower_record(generated: type, value: Any, where: str) -> Any:
    own = CLASSES[generated.__name__]
    _expect(isinstance(value, own), value, where, f"`{own.__name__}`")
    return _made(generated, _fields(value, own), where)


def _fields(value: Any, own: type | None = None) -> tuple[Any, ...]:
    own = own or type(value)
    json_fields = JSON_FIELDS[own]
    made = []
    for field in dataclasses.fields(own):
        item = getattr(value, field.name)
        made.append(jsontext.dumps(item) if field.name in json_fields else item)
    return tuple(made)


def _made(generated: Any, payload: tuple[Any, ...], where: str) -> Any:
    hints = dataclasses.fields(generated)
    return generated(*[lower(item, hint.type, f"`{hint.name}` of {where}") for item, hint in zip(payload, hints)])


def _expect(fits: bool, value: Any, where: str, expected: str) -> None:
    if not fits:
        raise TypeError(f"{where} must be {expected}, and is {jsontext.kind_of(value)}")


_PLAIN: dict[Any, Callable[[Any, str], Any]] = {
    str: _lower_text,
    int: _lower_u32,
    float: _lower_float,
    bool: _lower_bool,
    bytes: _lower_bytes,
    None: _lower_none,
    types.NoneType: _lower_none,
}


# From the host.


def lift(value: Any) -> Any:
    """A generated value as one of this package."""
    if isinstance(value, list):
        return [lift(item) for item in value]
    if isinstance(value, enum.Enum):
        return CLASSES[type(value).__name__][value.name]  # type: ignore[index]
    name = type(value).__name__
    # The two cases of a result within a list; alone an error is raised.
    if name == "Ok":
        return lift(value.value)
    if name == "Err":
        return lift_error(value.value)
    if dataclasses.is_dataclass(value):
        return _lift_record(CLASSES[name], value)
    return value


def _lift_record(own: type, value: Any) -> Any:
    names = [field.name for field in dataclasses.fields(own)]
    items = dict(zip(names, (getattr(value, field.name) for field in dataclasses.fields(value))))
    for name, item in items.items():
        items[name] = _lift_json(own, name, item) if name in JSON_FIELDS[own] else lift(item)
    return own(**items)


def _lift_json(own: type, name: str, text: str) -> Any:
    what = f"`{name}` of {own.__name__}"
    if name in OBJECT_FIELDS[own]:
        return jsontext.loads_object(what, text)
    try:
        return jsontext.loads(what, text)
    except errors.InvalidError:
        if name in OUTPUT_FIELDS[own]:
            return text
        raise


_IMPORT_ERRORS: dict[str, Callable[[Any], errors.Error]] = {
    "Denied": lambda denial: errors.DeniedError(denial.reason, denial.fix),
    "Limit": lambda hit: errors.LimitError(hit.name, hit.used, hit.max),
    "ContextFull": lambda hit: errors.ContextFullError(hit.name, hit.used, hit.max),
    "Unavailable": lambda outage: errors.UnavailableError(outage.reason, outage.retry_after_ms),
    "Blocked": errors.BlockedError,
    "Invalid": errors.InvalidError,
    "Refused": errors.RefusedError,
    "UnknownFunction": errors.UnknownFunctionError,
    "InvalidArguments": errors.InvalidArgumentsError,
    "TimedOut": errors.TimedOutError,
    "OutcomeUnknown": errors.OutcomeUnknownError,
    "UnknownCheck": errors.UnknownCheckError,
    "UnknownAgent": errors.UnknownAgentError,
    "UnknownStep": errors.UnknownStepError,
    "Failed": errors.FailedError,
}


def lift_error(value: Any) -> errors.Error:
    """The exception for a case of an error of the contract."""
    case = type(value).__name__.partition("_")[2]
    return _IMPORT_ERRORS[case](value.value)


def lower_error(bindings: Bindings, case: str, variant: str, error: errors.Error) -> Any:
    """An exception as `case` of the error `variant` of a role."""
    payload: Any
    if isinstance(error, errors.DeniedError) and case == "Denied":
        payload = bindings.type_named("Denial")(_clean(error.reason), _clean(error.fix))
    elif isinstance(error, errors.LimitError) and case == "Limit":
        payload = bindings.type_named("LimitHit")(_clean(error.name), float(error.used), float(error.max))
    elif isinstance(error, errors.UnavailableError) and case == "Unavailable":
        after = lower(error.retry_after_ms, typing.Optional[int], "`retry_after_ms`")
        payload = bindings.type_named("Outage")(_clean(error.reason), after)
    elif isinstance(error, errors.TimedOutError) and case == "TimedOut":
        payload = lower(error.ms, int, "`ms` of TimedOutError")
    else:
        # In its own case the text says it all; elsewhere it needs the words of its class.
        payload = _clean(str(error) if case == "Failed" else error.text)
    return bindings.type_named(f"{variant}_{case}")(payload)


def _clean(text: Any) -> str:
    return _lower_text(str(text), "the text of an error")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


_host.backend = load()
