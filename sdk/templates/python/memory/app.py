"""The memory backend `{{name}}`: entries in the key-value space, which is the only place of truth.

An instance may be gone after any call, so nothing is kept in it.
"""

import json
from collections.abc import Iterator

from longhaul_sdk import Entry, Hit, InvalidError, Memory, Page, clock, export, keyvalue


@export
class Plugin(Memory):
    def put(self, namespace: str, entry: Entry) -> None:
        if not entry.key:
            raise InvalidError("an entry needs a key")
        stored = {"value": entry.value, "tags": entry.tags, "expires_at_ms": entry.expires_at_ms}
        keyvalue.set(_place(namespace, entry.key), json.dumps(stored).encode())

    def get(self, namespace: str, key: str) -> Entry | None:
        return _read(namespace, key)

    def search(self, namespace: str, query: str, limit: int) -> list[Hit]:
        words = query.lower().split()
        hits = []
        for entry in _entries(namespace, ""):
            text = " ".join([entry.key, *entry.tags, json.dumps(entry.value, ensure_ascii=False)]).lower()
            found = sum(word in text for word in words)
            if found:
                hits.append(Hit(entry, found / len(words)))
        # The sort is stable, so equal scores stay in the order of their keys.
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    def delete(self, namespace: str, key: str) -> bool:
        was_there = _read(namespace, key) is not None
        keyvalue.delete(_place(namespace, key))
        return was_there

    def list_keys(self, namespace: str, prefix: str, cursor: str | None, limit: int) -> Page:
        keys = [entry.key for entry in _entries(namespace, prefix) if cursor is None or entry.key > cursor]
        listed = keys[:limit]
        return Page(listed, listed[-1] if listed and len(keys) > limit else None)


def _place(namespace: str, key: str) -> str:
    """The key of an entry. The length in front keeps `a` + `bc` apart from `ab` + `c`."""
    return f"{len(namespace)}:{namespace}{key}"


def _read(namespace: str, key: str) -> Entry | None:
    """The entry, unless it has expired; then it is removed."""
    place = _place(namespace, key)
    stored = keyvalue.get(place)
    if stored is None:
        return None
    entry = Entry(key, **json.loads(stored))
    if entry.expires_at_ms is not None and entry.expires_at_ms <= clock.now_ms():
        keyvalue.delete(place)
        return None
    return entry


def _entries(namespace: str, prefix: str) -> Iterator[Entry]:
    """Entries whose keys begin with `prefix`, in the order of the keys."""
    start = _place(namespace, "")
    for place in sorted(keyvalue.keys(start + prefix)):
        entry = _read(namespace, place.removeprefix(start))
        if entry is not None:
            yield entry
