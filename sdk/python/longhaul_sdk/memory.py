"""The role of a memory backend, whose truth is in its keyvalue space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from ._records import record


@record(json=("value",))
@dataclass
class Entry:
    """Something that is kept. `value` is any JSON value."""

    key: str
    value: Any
    tags: list[str] = field(default_factory=list)
    # Milliseconds since 1970-01-01 UTC; None: kept for ever.
    expires_at_ms: float | None = None


@record()
@dataclass
class Hit:
    """An entry that was found; a higher score fits better."""

    entry: Entry
    score: float


@record()
@dataclass
class Page:
    """Some keys. `cursor` is that of the next page, None on the last one."""

    keys: list[str]
    cursor: str | None = None


@record(objects=("settings",))
@dataclass
class MemoryContext:
    """The context of a call. `settings` are the operator's for this memory backend."""

    settings: dict[str, Any] = field(default_factory=dict)


class Memory(ABC):
    """Derive from it, write its five methods, and mark the class with `@export`.

    A new instance of the class is made for each call, with the context of the call as `context`, and the
    host may start a fresh component between any two: keep what must last in `keyvalue`. Namespaces must not see each other. An entry
    whose `value` is not JSON never arrives here; the caller gets `invalid`.
    """

    context: MemoryContext

    @abstractmethod
    def put(self, namespace: str, entry: Entry) -> None:
        """Keeps an entry in place of the one that has its key."""

    @abstractmethod
    def get(self, namespace: str, key: str) -> Entry | None:
        """The entry, unless there is none or it is expired."""

    @abstractmethod
    def search(self, namespace: str, query: str, limit: int) -> list[Hit]:
        """At most `limit` entries, the best first."""

    @abstractmethod
    def delete(self, namespace: str, key: str) -> bool:
        """Whether there was something to delete."""

    @abstractmethod
    def list_keys(self, namespace: str, prefix: str, cursor: str | None, limit: int) -> Page:
        """At most `limit` keys: the first ones, or those of `cursor`. The contract's `list`."""
