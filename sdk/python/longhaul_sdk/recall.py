"""Memory of the run and of earlier runs. For agents and planners."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from . import _host, jsontext
from ._records import record


@record()
class Tier(enum.Enum):
    """The memory that a note belongs to: that of this run, or that of the project."""

    WORKING = "working"
    EPISODIC = "episodic"


@record(json=("value",))
@dataclass
class Remembered:
    """A note that a search found. `score` is its relevance, above 0."""

    key: str
    value: Any
    tier: Tier
    score: float


def remember(key: str, value: Any, tier: Tier = Tier.WORKING) -> None:
    """Keeps a JSON value under a key, in place of the last one.

    A key has at most 512 bytes and a value at most 64 KiB; otherwise it raises LimitError.
    """
    _host.call("recall", "remember", tier, key, jsontext.dumps(value))


def fetch(key: str, tier: Tier = Tier.WORKING) -> Any:
    """Returns the value of a key. None: there is none, or the value is null."""
    text = _host.call("recall", "fetch", tier, key)
    return None if text is None else jsontext.loads(f"what is remembered as `{key}`", text)


def search(query: str, limit: int = 10) -> list[Remembered]:
    """Finds at most `limit` notes of both tiers that fit the query, the best first."""
    found: list[Remembered] = _host.call("recall", "search", query, limit)
    return found
