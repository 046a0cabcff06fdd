"""Reads and writes JSON: settings, contexts, arguments and replies of models.

It is stricter than the module `json`: it refuses `NaN`, numbers that are no float, halves of surrogate pairs, and
nesting deeper than `DEPTH_MAX`. Errors name the expected and the found value.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from .errors import InvalidError

# As deep as the host reads. Python's own parser would end a component at about 1,000, not raise.
DEPTH_MAX = 127

# The number of `{` that `first_object` tries, and of the lengths of the text that it looks at in all: a
# reply of nothing but false starts must not cost its square.
_STARTS_MAX = 1_000
_LOOKS_MAX = 20

# A text that is never closed reaches to the end; looking for its end again at each quote would cost a square.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def loads(what: str, text: str) -> Any:
    """Reads JSON. The error calls the text `what`.

    Raises InvalidError with the line and the column at which the parser stopped.
    """
    if not _is_shallow(text) and _depth_until(text, 0)[0] > DEPTH_MAX:
        raise InvalidError(f"{what} cannot be read: it nests deeper than {DEPTH_MAX}")
    try:
        value = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidError(f"{what} cannot be read: it has half of a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{what} cannot be read: {error}") from None
    return value


def loads_object(what: str, text: str) -> dict[str, Any]:
    """As `loads`, for an object. An empty text reads as `{}`, so that missing settings take their defaults."""
    value = loads(what, text) if text.strip() else {}
    if not isinstance(value, dict):
        raise InvalidError(f"{what} must be a JSON object, and is {kind_of(value)}")
    return value


def dumps(value: Any) -> str:
    """Writes `value` as JSON. Dataclasses become objects, enums their values, and tuples lists.

    Raises TypeError or ValueError for a value that JSON cannot hold.
    """
    _check_depth(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def first_object(text: str, wanted: Callable[[dict[str, Any]], bool] = lambda value: True) -> dict[str, Any] | None:
    """Returns the first complete JSON object in `text` for which `wanted` is true. None: there is none.

    Models wrap their JSON in prose, fences and false starts. An object inside another one is only tried when the
    outer one cannot be read or is not wanted.
    """
    at, left, is_shallow = -1, _LOOKS_MAX * len(text), _is_shallow(text)
    for _ in range(_STARTS_MAX):
        at = text.find("{", at + 1)
        if at < 0 or left < 0:
            return None
        depth, end = (0, at) if is_shallow else _depth_until(text, at)
        left -= end - at
        value = _object_at(text, at) if depth <= DEPTH_MAX else None
        if value is not None and wanted(value):
            return value
    return None


def cut(text: str, chars_max: int) -> str:
    """Returns the first `chars_max` characters of `text`, with a note on the missing rest."""
    missing = len(text) - chars_max
    return text if missing <= 0 else f"{text[:chars_max]}… ({missing} more characters)"


def tail(text: str, chars_max: int) -> str:
    """Returns the last `chars_max` characters of `text`, where a failure mostly says its cause."""
    return text[max(0, len(text) - chars_max) :]


def kind_of(value: Any) -> str:
    """The kind of a value, in the words of JSON."""
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a text", dict: "an object"}
    if value is None:
        return "null"
    return "a list" if isinstance(value, (list, tuple)) else kinds.get(type(value), f"`{type(value).__name__}`")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number `{cut(text, 40)}` is out of range")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"`{text}` is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


def _object_at(text: str, at: int) -> dict[str, Any] | None:
    try:
        value, _ = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_shallow(text: str) -> bool:
    """Whether a glance is enough to see that nothing nests too deep."""
    return text.count("[") + text.count("{") <= DEPTH_MAX


def _depth_until(text: str, at: int) -> tuple[int, int]:
    """The depth of the value that starts at `at`, and the place of its end, or of too great a depth."""
    depth = deepest = 0
    for token in _TOKEN.finditer(text, at):
        first = token.group()[0]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
        if depth > DEPTH_MAX or (depth <= 0 and first != '"'):
            return deepest, token.end()
    return deepest, len(text)


def _check_depth(value: Any) -> None:
    """Level by level, since Python's own encoder would end a component and not raise."""
    level = _containers([value])
    for _ in range(DEPTH_MAX + 1):
        if not level:
            return
        level = _containers(item for container in level for item in _items(container))
    raise ValueError(f"the value nests deeper than {DEPTH_MAX}, or contains itself")


def _containers(items: Any) -> list[Any]:
    found = (item for item in items if isinstance(item, (dict, list, tuple)) or _is_record(item))
    # One that is there twice is looked at once, or a list of itself twice would double each level.
    return list({id(item): item for item in found}.values())


def _items(container: Any) -> Any:
    if isinstance(container, dict):
        return container.values()
    return vars(container).values() if _is_record(container) else container


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _plain(value: Any) -> Any:
    if _is_record(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"JSON has no place for `{type(value).__name__}`")
