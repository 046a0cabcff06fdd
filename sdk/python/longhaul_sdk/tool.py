"""The role of a tool: it offers functions to agents.

A function is an ordinary method with type hints and the decorator `@function`. Its name, the first paragraph of its
docstring and its hints make its description; arguments are checked against the hints before the method is called.
`prepare` and `verify` exist only for functions with the effect `verifiable`.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from . import jsontext
from ._records import cases, record
from .errors import InvalidArgumentsError, InvalidError, UnknownFunctionError
from .schema import Shape, hints_of, object_of, shape_of

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Callable[..., Any])

EffectName = Literal["read-only", "idempotent", "verifiable", "acts"]


@record()
class EffectClass(enum.Enum):
    """The effect class of a function. It decides what the host does with a call that was cut off."""

    READ_ONLY = "read-only"
    IDEMPOTENT = "idempotent"
    VERIFIABLE = "verifiable"
    ACTS = "acts"


@record(objects=("parameters",))
@dataclass
class Function:
    """The description of a function. `parameters` is a JSON Schema (2020-12) of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: EffectClass


@record()
@dataclass
class ToolInfo:
    """The description of a tool."""

    id: str
    description: str
    functions: list[Function]


@record(objects=("settings",))
@dataclass
class CallContext:
    """Facts about one call, for a method with a parameter of this type. The caller does not pass it."""

    # The same for every attempt of one call, and different for every other call.
    idempotency_key: str = "test"
    # The time that the call may still take, in milliseconds.
    remaining_ms: int = 30_000
    # The number of the attempt, from 1.
    attempt: int = 1
    # The settings that the operator wrote for this tool. A secret in them is a placeholder.
    settings: dict[str, Any] = field(default_factory=dict)


@record(outputs=("output",))
@dataclass
class ToolResult:
    """The result of a function. Return the bare output, or a ToolResult to mark it as cut."""

    output: Any
    truncated: bool = False


# The answer of a function's `verify`.


@dataclass
class Happened:
    """The call had its effect, with this output."""

    output: Any
    truncated: bool = False


@dataclass
class DidNotHappen:
    """The call had no effect."""


@dataclass
class Unknown:
    """The tool cannot tell. The host asks a person and shows this text."""

    question: str


Verification = Happened | DidNotHappen | Unknown


@cases("Verification")
def _verification_case(value: Verification) -> tuple[str, tuple[Any, ...]]:
    if isinstance(value, Happened):
        return "Happened", (ToolResult(value.output, value.truncated),)
    return ("Unknown", (value.question,)) if isinstance(value, Unknown) else (type(value).__name__, ())


class ToolFunction(Generic[P, R]):
    """A method with the decorator `@function`. A call on an instance calls the method."""

    def __init__(self, method: Callable[Concatenate[Any, P], R], effect: EffectName, name: str | None) -> None:
        self.__doc__ = method.__doc__
        self.method = method
        self.name = name or method.__name__
        self.effect = EffectClass(effect)
        self.prepare_method: Callable[..., Any] | None = None
        self.verify_method: Callable[..., Verification] | None = None

    @overload
    def __get__(self, instance: None, owner: type) -> ToolFunction[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self.method.__get__(instance, owner)

    def prepare(self, method: C) -> C:
        """Marks the method that returns the facts by which `verify` can recognise the effect of a call.

        The host calls it before the call. It takes the arguments of the function, and the context where it has a
        parameter of the type CallContext. It returns any JSON value, and must have no effect.
        """
        self._needs_verifiable("prepare")
        self.prepare_method = method
        return method

    def verify(self, method: C) -> C:
        """Marks the method that tells whether a call that was cut off, or whose answer was lost, had its effect.

        Its first argument is the result of `prepare`; the others are those of `prepare`. It must have no effect.
        """
        self._needs_verifiable("verify")
        self.verify_method = method
        return method

    def _needs_verifiable(self, what: str) -> None:
        if self.effect is not EffectClass.VERIFIABLE:
            raise TypeError(f'`{self.name}` has `{what}`, which is for functions with effect="verifiable"')


def function(
    *, effect: EffectName = "acts", name: str | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], ToolFunction[P, R]]:
    """Makes a method of a Tool a function that agents can call.

    `effect` is the claim that decides about a call that was cut off: `read-only` (the host repeats it),
    `idempotent` (the host repeats it with the same idempotency key), `verifiable` (the host asks `verify`) or
    `acts` (the host asks a person). The host uses the claim where the grants of the tool prove it or the operator
    confirms it.
    """
    return lambda method: ToolFunction(method, effect, name)


class Tool:
    """The base class of a tool. Write methods with `@function`, and mark the class with `@export`.

    The docstring of the class is the description of the tool. A new instance of the class is made for each call.
    """

    # The name for people; the operator may grant the tool by another one. Default: the name of the class in
    # kebab-case.
    id: ClassVar[str]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "id" not in vars(cls):
            cls.id = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


# The work of the exports with a tool; not for authors.


@dataclasses.dataclass(frozen=True)
class Described:
    """A function with its derived description."""

    function: ToolFunction[..., Any]
    info: Function
    arguments: Shape
    # The parameter that wants the context, if one does.
    context_name: str | None


def describe(cls: type[Tool]) -> ToolInfo:
    """Returns the description of a tool. Raises TypeError for a tool that cannot be described."""
    functions = [described.info for described in described_functions(cls).values()]
    if not functions:
        raise TypeError(f"`{cls.__name__}` has no functions; mark its methods with `@function(effect=...)`")
    return ToolInfo(cls.id, _summary(cls), functions)


def described_functions(cls: type[Tool]) -> dict[str, Described]:
    """Returns the functions of a tool by name, those of its base classes first."""
    known: dict[str, Described] | None = vars(cls).get("_described")
    if known is None:
        known = _describe_functions(cls)
        # On the class itself: derived classes have functions of their own.
        type.__setattr__(cls, "_described", known)
    return known


def _describe_functions(cls: type[Tool]) -> dict[str, Described]:
    found: dict[str, Described] = {}
    attributes: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        attributes.update(vars(base))
    for attribute in attributes.values():
        if isinstance(attribute, ToolFunction):
            found[attribute.name] = _described(attribute)
    return found


def call(tool: Tool, name: str, arguments: str, context: CallContext) -> ToolResult:
    """Calls a function with arguments as JSON text."""
    described, values = _find(tool, name, arguments)
    if described.context_name:
        values[described.context_name] = context
    output = described.function.method(tool, **values)
    return output if isinstance(output, ToolResult) else ToolResult(output)


def prepare(tool: Tool, name: str, arguments: str, context: CallContext) -> str:
    """Calls the `prepare` method of a function. Returns `{}` where there is none."""
    described, values = _find(tool, name, arguments)
    method = described.function.prepare_method
    if method is None:
        return "{}"
    return jsontext.dumps(method(tool, **values, **_context_of(method, context)))


def verify(tool: Tool, name: str, arguments: str, prepared: str, context: CallContext) -> Verification:
    """Calls the `verify` method of a function. Returns Unknown where there is none."""
    described, values = _find(tool, name, arguments)
    method = described.function.verify_method
    if method is None:
        return Unknown(f"`{type(tool).id}.{name}` cannot tell whether it happened; did it?")
    noted = jsontext.loads("what `prepare` answered", prepared)
    return method(tool, noted, **values, **_context_of(method, context))


def _context_of(method: Callable[..., Any], context: CallContext) -> dict[str, CallContext]:
    """The context, by the name of the parameter that wants it."""
    hints = hints_of(method)
    return {name: context for name in inspect.signature(method).parameters if hints.get(name) is CallContext}


def _find(tool: Tool, name: str, arguments: str) -> tuple[Described, dict[str, Any]]:
    functions = described_functions(type(tool))
    if name not in functions:
        known = ", ".join(functions)
        raise UnknownFunctionError(f"`{jsontext.cut(name, 100)}`; the tool `{type(tool).id}` has {known}")
    try:
        values = functions[name].arguments.read(jsontext.loads_object("the arguments", arguments), "")
    except InvalidError as wrong:
        raise InvalidArgumentsError(wrong.text) from None
    return functions[name], values


def _described(function: ToolFunction[..., Any]) -> Described:
    name = function.name
    if function.effect is EffectClass.VERIFIABLE and function.verify_method is None:
        raise TypeError(f"`{name}` says it is verifiable; mark the method that can tell with `@{name}.verify`")
    hints = hints_of(function.method)
    parameters = list(inspect.signature(function.method).parameters.values())[1:]
    fields, context_name = {}, None
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"`{parameter.name}` of `{name}` must be an ordinary parameter, which has a name")
        if parameter.name not in hints:
            raise TypeError(f"`{parameter.name}` of `{name}` has no type; write `{parameter.name}: str`, for example")
        if hints[parameter.name] is CallContext:
            context_name = parameter.name
        else:
            fields[parameter.name] = (shape_of(hints[parameter.name]), parameter.default is parameter.empty)
    arguments = object_of(fields, f"an argument of `{name}`")
    info = Function(name, _summary(function.method), arguments.schema, function.effect)
    return Described(function, info, arguments, context_name)


def _summary(target: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(target.__doc__ or "").split("\n\n")[0].split())
