"""A private, durable key-value space of the plugin, for tools and memory backends.

A key has at most 1,024 bytes and a value at most 4 MiB, else LimitError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import _host
from ._records import record


@record()
@dataclass
class KeyPage:
    """Some keys; give `cursor` back to get more, None on the last page."""

    keys: list[str]
    cursor: str | None = None


def get(key: str) -> bytes | None:
    """The value, or None."""
    value: bytes | None = _host.call("keyvalue", "get", key)
    return value


def set(key: str, value: bytes) -> None:
    """Keeps a value in place of the earlier one."""
    _host.call("keyvalue", "set", key, value)


def delete(key: str) -> None:
    """Deletes a key, also one that is not there."""
    _host.call("keyvalue", "delete", key)


def exists(key: str) -> bool:
    """Whether there is a value."""
    return bool(_host.call("keyvalue", "exists", key))


def list_keys(prefix: str = "", cursor: str | None = None) -> KeyPage:
    """A page of the keys that start with `prefix`; it may be empty and still have a cursor."""
    page: KeyPage = _host.call("keyvalue", "list_keys", prefix, cursor)
    return page


def keys(prefix: str = "") -> Iterator[str]:
    """All keys that start with `prefix`, page by page."""
    cursor = None
    while True:
        page = list_keys(prefix, cursor)
        yield from page.keys
        cursor = page.cursor
        if cursor is None:
            return
