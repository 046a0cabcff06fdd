"""Working memory of this run and episodic memory of earlier ones. For agents and planners."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from . import _host, jsontext
from ._records import record


@record()
class Tier(enum.Enum):
    """The lifetime of a memory."""

    WORKING = "working"
    EPISODIC = "episodic"


@record(json=("value",))
@dataclass
class Remembered:
    """Something that was found; `score` is above 0."""

    key: str
    value: Any
    tier: Tier
    score: float


def remember(key: str, value: Any, tier: Tier = Tier.WORKING) -> None:
    """Keeps any JSON value."""
    _host.call("recall", "remember", tier, key, jsontext.dumps(value))


def fetch(key: str, tier: Tier = Tier.WORKING) -> Any:
    """The value; None also when there is none."""
    text = _host.call("recall", "fetch", tier, key)
    return None if text is None else jsontext.loads(f"what is remembered as `{key}`", text)


def search(query: str, limit: int = 10) -> list[Remembered]:
    """At most `limit` things that have to do with `query`, the best first, of both tiers."""
    found: list[Remembered] = _host.call("recall", "search", query, limit)
    return found
