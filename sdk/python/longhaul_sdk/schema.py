"""JSON Schema (2020-12) from type hints, and values of those types from JSON.

Supported are `str`, `int`, `float`, `bool`, `None`, `Any`, `list[T]`, `dict[str, T]`, `Optional`, unions, `Literal`
and dataclasses, each with `Annotated[T, Field(...)]` or `Annotated[T, "description"]`. Other types, and types that
contain themselves, are refused when the class is defined, and so when the plugin is built.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from .errors import InvalidError
from .jsontext import kind_of

Reader = Callable[[Any, str], Any]


@dataclasses.dataclass(frozen=True)
class Field:
    """Bounds of a value that a type hint cannot express. Lengths are in characters, items or keys; both ends are
    included.
    """

    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None


@dataclasses.dataclass(frozen=True)
class Shape:
    """A type as JSON Schema, with the function that reads its values."""

    schema: dict[str, Any]
    read: Reader


class Mismatch(InvalidError):
    """A value that does not satisfy the schema. The text starts with the path of the fault."""


def schema_of(hint: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a type. Raises TypeError for a type that is not supported."""
    return shape_of(hint).schema


def read_as(hint: Any, value: Any, what: str = "the value") -> Any:
    """Reads `value`, which came from JSON, as the type `hint`. Raises InvalidError that names the fault."""
    return shape_of(hint).read(value, what)


def shape_of(hint: Any, within: tuple[Any, ...] = ()) -> Shape:
    """Returns the shape of a type. Raises TypeError for a type that is not supported."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _annotated(shape_of(arguments[0], within), arguments[1:])
    if hint in (Any, object):
        return Shape({}, lambda value, path: value)
    if hint in (None, types.NoneType):
        return Shape({"type": "null"}, lambda value, path: _check(value is None, value, path, "null"))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union([shape_of(argument, within) for argument in arguments])
    if (origin or hint) is list:
        return _list(shape_of(arguments[0] if arguments else Any, within))
    if (origin or hint) is dict:
        if arguments and arguments[0] is not str:
            raise TypeError(f"the keys of `{hint}` must be `str`: JSON has no others")
        return _dict(shape_of(arguments[1] if arguments else Any, within))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint, within)
    raise TypeError(
        f"no JSON Schema can be made of `{hint}`; use str, int, float, bool, list[T], dict[str, T], "
        "Optional, unions, Literal, Any or a dataclass"
    )


def object_of(fields: dict[str, tuple[Shape, bool]], what: str) -> Shape:
    """Returns the shape of an object with these fields and no others. Each is a shape and whether it is required."""
    schema = {
        "type": "object",
        "properties": {name: shape.schema for name, (shape, _) in fields.items()},
        "required": [name for name, (_, required) in fields.items() if required],
        "additionalProperties": False,
    }

    def read(value: Any, path: str) -> dict[str, Any]:
        _check(isinstance(value, dict), value, path, "an object")
        prefix = f"{path}." if path else ""
        for name in value:
            if name not in fields:
                known = ", ".join(fields) or "none"
                raise Mismatch(f"`{prefix}{_short(name)}` is not {what}; known: {known}")
        for name, (_, required) in fields.items():
            if required and name not in value:
                raise Mismatch(f"`{prefix}{name}` is missing")
        return {name: fields[name][0].read(item, prefix + name) for name, item in value.items()}

    return Shape(schema, read)


def hints_of(target: Any) -> dict[str, Any]:
    """The type hints of a function or class, with what `Annotated` adds."""
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        name = getattr(target, "__qualname__", target)
        raise TypeError(f"the types of `{name}` cannot be found: {error}; define them at the top of a module") from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


def _check(fits: bool, value: Any, path: str, expected: str) -> Any:
    if not fits:
        raise Mismatch(f"`{path or 'the value'}` must be {expected}, and is {kind_of(value)}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _read_int(value: Any, path: str) -> int:
    # JSON knows one kind of number: 3.0 is an integer.
    is_whole = _is_number(value) and (isinstance(value, int) or value.is_integer())
    return int(_check(is_whole, value, path, "a whole number"))


def _read_float(value: Any, path: str) -> float:
    _check(_is_number(value), value, path, "a number")
    try:
        return float(value)
    except OverflowError:
        raise Mismatch(f"`{path}` is out of range") from None


_PLAIN: dict[Any, Shape] = {
    str: Shape({"type": "string"}, lambda value, path: _check(isinstance(value, str), value, path, "a text")),
    bool: Shape({"type": "boolean"}, lambda value, path: _check(isinstance(value, bool), value, path, "a boolean")),
    int: Shape({"type": "integer"}, _read_int),
    float: Shape({"type": "number"}, _read_float),
}


def _literal(allowed: tuple[Any, ...]) -> Shape:
    if not all(isinstance(value, (str, int, bool, types.NoneType)) for value in allowed):
        raise TypeError(f"`Literal{list(allowed)}` can hold texts, whole numbers, booleans and None")
    schema: dict[str, Any] = {"enum": list(allowed)}
    if all(isinstance(value, str) for value in allowed):
        schema = {"type": "string", **schema}
    words = ", ".join(f"`{value}`" for value in allowed)

    def read(value: Any, path: str) -> Any:
        # `True == 1` in Python, and not in JSON.
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise Mismatch(f"`{path or 'the value'}` must be one of {words}")
        return value

    return Shape(schema, read)


def _union(shapes: list[Shape]) -> Shape:
    def read(value: Any, path: str) -> Any:
        wrongs = []
        for shape in shapes:
            try:
                return shape.read(value, path)
            except Mismatch as wrong:
                wrongs.append(wrong)
        if value is not None:
            # The type of a null says nothing to a caller who sent none.
            wrongs = [wrong for wrong, shape in zip(wrongs, shapes) if shape.schema != {"type": "null"}]
        if len(wrongs) == 1:
            raise wrongs[0]
        raise Mismatch(f"`{path or 'the value'}` fits none of: " + "; ".join(wrong.text for wrong in wrongs))

    return Shape({"anyOf": [shape.schema for shape in shapes]}, read)


def _list(item: Shape) -> Shape:
    def read(value: Any, path: str) -> list[Any]:
        _check(isinstance(value, list), value, path, "a list")
        return [item.read(one, f"{path}[{at}]") for at, one in enumerate(value)]

    return Shape({"type": "array", "items": item.schema}, read)


def _dict(item: Shape) -> Shape:
    def read(value: Any, path: str) -> dict[str, Any]:
        _check(isinstance(value, dict), value, path, "an object")
        return {key: item.read(one, f"{path}.{_short(key)}") for key, one in value.items()}

    return Shape({"type": "object", "additionalProperties": item.schema}, read)


def _dataclass(cls: type, within: tuple[Any, ...]) -> Shape:
    if cls in within:
        raise TypeError(f"`{cls.__name__}` contains itself; write `dict[str, Any]` where it comes again")
    hints = hints_of(cls)
    fields = {}
    for field in dataclasses.fields(cls):
        if field.init:
            has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            fields[field.name] = (shape_of(hints[field.name], (*within, cls)), not has_default)
    shape = object_of(fields, f"a field of {cls.__name__}")
    # A dataclass without a text of its own gets its signature as one, which says nothing.
    text = inspect.cleandoc(cls.__doc__ or "")
    is_own = text and not text.startswith(f"{cls.__name__}(")
    schema = {"description": text, **shape.schema} if is_own else shape.schema
    return Shape(schema, lambda value, path: cls(**shape.read(value, path)))


def _annotated(shape: Shape, notes: tuple[Any, ...]) -> Shape:
    for note in notes:
        if isinstance(note, str):
            shape = Shape({**shape.schema, "description": note}, shape.read)
        elif isinstance(note, Field):
            shape = _with_field(shape, note)
    return shape


_LENGTHS = {
    "string": ("minLength", "maxLength", "characters"),
    "array": ("minItems", "maxItems", "entries"),
    "object": ("minProperties", "maxProperties", "keys"),
}


def _with_field(shape: Shape, field: Field) -> Shape:
    kind = shape.schema.get("type")
    extra: dict[str, Any] = {}
    if field.description is not None:
        extra["description"] = field.description
    if (field.minimum, field.maximum) != (None, None):
        if kind not in ("integer", "number"):
            raise TypeError("`minimum` and `maximum` are for int and float")
        bounds = {"minimum": field.minimum, "maximum": field.maximum}
        extra.update({name: bound for name, bound in bounds.items() if bound is not None})
    least, most, unit = _LENGTHS.get(str(kind), ("", "", ""))
    if (field.min_length, field.max_length) != (None, None):
        if not unit:
            raise TypeError("`min_length` and `max_length` are for str, list and dict")
        lengths = {least: field.min_length, most: field.max_length}
        extra.update({name: length for name, length in lengths.items() if length is not None})

    def read(value: Any, path: str) -> Any:
        value = shape.read(value, path)
        _bounded(value, path, field.minimum, field.maximum, "")
        if unit:
            # A dataclass is read into an instance; its keys are those of the schema.
            size = len(value) if hasattr(value, "__len__") else 0
            _bounded(size, path, field.min_length, field.max_length, f" {unit} long")
        return value

    return Shape({**shape.schema, **extra}, read)


def _bounded(value: Any, path: str, least: float | None, most: float | None, unit: str) -> None:
    if least is not None and not value >= least:
        raise Mismatch(f"`{path or 'the value'}` must be at least {_show(least)}{unit}, and is {_show(value)}")
    if most is not None and not value <= most:
        raise Mismatch(f"`{path or 'the value'}` must be at most {_show(most)}{unit}, and is {_show(value)}")


def _show(number: float) -> str:
    if isinstance(number, float) and math.isfinite(number) and number.is_integer():
        return _short(str(int(number)))
    return _short(str(number))
