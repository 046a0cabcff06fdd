"""The memory backend `shelf`: entries in the key-value space, found by the words in them.

What is kept is in `keyvalue` alone. An expired entry is as good as none, and deleted when it is met.
"""

import json
import math

from longhaul_sdk import Entry, Hit, InvalidError, Memory, Page, clock, export, jsontext, keyvalue


@export
class Shelf(Memory):
    """Looks at every entry of a namespace: made for thousands, not for millions."""

    def put(self, namespace: str, entry: Entry) -> None:
        if entry.expires_at_ms is not None and not math.isfinite(entry.expires_at_ms):
            raise InvalidError("`expires-at-ms` must be a number of milliseconds since 1970")
        kept = {"value": entry.value, "tags": entry.tags, "expires_at_ms": entry.expires_at_ms}
        keyvalue.set(address(namespace, entry.key), jsontext.dumps(kept).encode())

    def get(self, namespace: str, key: str) -> Entry | None:
        at = address(namespace, key)
        stored = keyvalue.get(at)
        if stored is None:
            return None
        entry = Entry(key, **json.loads(stored))
        if entry.expires_at_ms is not None and entry.expires_at_ms <= clock.now_ms():
            keyvalue.delete(at)
            return None
        return entry

    def search(self, namespace: str, query: str, limit: int) -> list[Hit]:
        words = set(query.lower().split())
        if not words or limit == 0:
            return []
        hits = []
        for key in self._keys(namespace):
            entry = self.get(namespace, key)
            score = share(words, entry) if entry is not None else 0.0
            if entry is not None and score > 0:
                hits.append(Hit(entry, score))
        hits.sort(key=lambda hit: (-hit.score, hit.entry.key))
        return hits[:limit]

    def delete(self, namespace: str, key: str) -> bool:
        if self.get(namespace, key) is None:
            return False
        keyvalue.delete(address(namespace, key))
        return True

    def list_keys(self, namespace: str, prefix: str, cursor: str | None, limit: int) -> Page:
        keys: list[str] = []
        for key in sorted(self._keys(namespace, prefix)):
            if (cursor is not None and key <= cursor) or self.get(namespace, key) is None:
                continue
            if len(keys) == limit:
                return Page(keys, keys[-1] if keys else cursor)
            keys.append(key)
        return Page(keys)

    def _keys(self, namespace: str, prefix: str = "") -> list[str]:
        # All at once: entries may be deleted while they are looked at.
        start = shelf(namespace)
        return [key[len(start) :] for key in keyvalue.keys(start + prefix)]


def shelf(namespace: str) -> str:
    """The length keeps namespaces apart whatever characters they have: `a` and `b/c`, `a/b` and `c`."""
    return f"{len(namespace)}/{namespace}/"


def address(namespace: str, key: str) -> str:
    """The place of an entry. A key of the space has at most 1,024 bytes."""
    if not key:
        raise InvalidError("the key is empty")
    return shelf(namespace) + key


def share(words: set[str], entry: Entry) -> float:
    """The share of the words that occur in the entry, between 0 and 1."""
    value = entry.value if isinstance(entry.value, str) else jsontext.dumps(entry.value)
    text = "\n".join([entry.key, *entry.tags, value]).lower()
    return sum(word in text for word in words) / len(words)
