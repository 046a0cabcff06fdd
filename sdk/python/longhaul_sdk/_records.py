"""The classes of this package, and the types of the contract that they stand for.

The classes have the contract's fields in the contract's order, so that converting needs no list of
its own; `tests/test_contract.py` holds them to the WIT files. Where the contract says `json`, the
class has the value and not its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

# By the name of the type in the generated bindings, such as `Task` or `OnFailure_Retry`.
CLASSES: dict[str, type] = {}

# The names again, by class.
NAMES: dict[type, str] = {}

# Fields that are JSON text in the contract, by class.
JSON_FIELDS: dict[type, frozenset[str]] = {}

# Those of them that must be objects, and those that stay text when they cannot be read as JSON.
OBJECT_FIELDS: dict[type, frozenset[str]] = {}
OUTPUT_FIELDS: dict[type, frozenset[str]] = {}


def record(
    name: str | None = None,
    *,
    json: tuple[str, ...] = (),
    objects: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
) -> Callable[[T], T]:
    """Marks a record, an enum or a case of a variant; `name` where the contract calls it differently.

    `json`, `objects` and `outputs` name the fields that are JSON. An output comes from another
    plugin and may have been cut, so it is given as text where it is JSON no more.
    """

    def mark(cls: T) -> T:
        known = name or cls.__name__
        CLASSES[known] = cls
        NAMES[cls] = known
        JSON_FIELDS[cls] = frozenset(json + objects + outputs)
        OBJECT_FIELDS[cls] = frozenset(objects)
        OUTPUT_FIELDS[cls] = frozenset(outputs)
        return cls

    return mark


# Variants whose cases have no class of their own: from a value to the case and what it holds.
CASES: dict[str, Callable[[Any], tuple[str, tuple[Any, ...]]]] = {}


def cases(variant: str) -> Callable[[Callable[[Any], tuple[str, tuple[Any, ...]]]], None]:
    """Marks the function that finds the case of a value."""

    def mark(find: Callable[[Any], tuple[str, tuple[Any, ...]]]) -> None:
        CASES[variant] = find

    return mark
