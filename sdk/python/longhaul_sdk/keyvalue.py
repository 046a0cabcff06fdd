"""The private, durable key-value space of a tool or a memory backend.

A key has at most 1 024 bytes and a value at most 4 MiB; otherwise `set` raises LimitError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import _host
from ._records import record


@record()
@dataclass
class KeyPage:
    """A page of a list of keys. `cursor` is that of the next page; None: this is the last one."""

    keys: list[str]
    cursor: str | None = None


def get(key: str) -> bytes | None:
    """Returns the value of a key. None: the key does not exist."""
    value: bytes | None = _host.call("keyvalue", "get", key)
    return value


def set(key: str, value: bytes) -> None:
    """Sets the value of a key. The change is durable when the call returns."""
    _host.call("keyvalue", "set", key, value)


def delete(key: str) -> None:
    """Deletes a key, which need not exist."""
    _host.call("keyvalue", "delete", key)


def exists(key: str) -> bool:
    """Reports whether a key exists."""
    return bool(_host.call("keyvalue", "exists", key))


def list_keys(prefix: str = "", cursor: str | None = None) -> KeyPage:
    """Lists a page of the keys that start with `prefix`. A page may be empty and still have a cursor."""
    page: KeyPage = _host.call("keyvalue", "list_keys", prefix, cursor)
    return page


def keys(prefix: str = "") -> Iterator[str]:
    """Lists all keys that start with `prefix`, page by page."""
    cursor = None
    while True:
        page = list_keys(prefix, cursor)
        yield from page.keys
        cursor = page.cursor
        if cursor is None:
            return
