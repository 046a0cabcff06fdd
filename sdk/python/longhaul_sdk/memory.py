"""The role of a memory backend: it keeps and finds entries for the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from ._records import record


@record(json=("value",))
@dataclass
class Entry:
    """An entry. `value` is any JSON value."""

    # The key, unique within its namespace. At most 1 024 bytes.
    key: str
    value: Any
    # Words to find the entry by.
    tags: list[str] = field(default_factory=list)
    # The time at which the entry expires, in milliseconds since 1970-01-01 UTC. None: never.
    expires_at_ms: float | None = None


@record()
@dataclass
class Hit:
    """An entry that a search found. A higher score is better."""

    entry: Entry
    score: float


@record()
@dataclass
class Page:
    """A page of a list of keys. `cursor` is that of the next page; None: this is the last one."""

    keys: list[str]
    cursor: str | None = None


@record(objects=("settings",))
@dataclass
class MemoryContext:
    """Facts about one call."""

    # The settings that the operator wrote for this memory backend.
    settings: dict[str, Any] = field(default_factory=dict)


class Memory(ABC):
    """The base class of a memory backend. Write its five methods, and mark the class with `@export`.

    A new instance of the class is made for each call. Its field `context` is that of the call. Each call runs in a
    fresh component, so keep entries in `keyvalue`, in a granted directory or on a granted host. Namespaces must not
    see each other. An entry whose `value` is not JSON never arrives here; the caller gets `invalid`.
    """

    context: MemoryContext

    @abstractmethod
    def put(self, namespace: str, entry: Entry) -> None:
        """Keeps an entry, in place of the one with the same key. Repeating the call must change nothing."""

    @abstractmethod
    def get(self, namespace: str, key: str) -> Entry | None:
        """Returns the entry of a key. None: there is none, or it has expired."""

    @abstractmethod
    def search(self, namespace: str, query: str, limit: int) -> list[Hit]:
        """Finds at most `limit` entries that fit the query and have not expired, the best first."""

    @abstractmethod
    def delete(self, namespace: str, key: str) -> bool:
        """Deletes the entry of a key. Returns true when there was one that had not expired."""

    @abstractmethod
    def list_keys(self, namespace: str, prefix: str, cursor: str | None, limit: int) -> Page:
        """Lists at most `limit` keys that start with `prefix`: the first ones, or those of `cursor`.

        The contract calls it `list`.
        """
