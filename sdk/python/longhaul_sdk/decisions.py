"""The log of decisions and what came of them. For agents and planners."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from . import _host
from ._records import record as _record


@_record()
class DecisionOutcome(enum.Enum):
    """The outcome of a decision."""

    OPEN = "open"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    REVERTED = "reverted"


@_record()
@dataclass
class Decision:
    """A decision, with its situation and its reason."""

    context: str
    decision: str
    reasoning: str
    tags: list[str] = field(default_factory=list)
    outcome: DecisionOutcome = DecisionOutcome.OPEN
    lesson: str | None = None


@_record()
@dataclass
class FoundDecision:
    """A decision of the log."""

    id: str
    # Milliseconds since 1970-01-01 UTC.
    at_ms: float
    decision: Decision


def record(decision: Decision) -> str:
    """Keeps a decision and gives its id."""
    return str(_host.call("decisions", "record", decision))


def find(query: str, limit: int = 10) -> list[FoundDecision]:
    """At most `limit` earlier decisions, the best first."""
    found: list[FoundDecision] = _host.call("decisions", "find", query, limit)
    return found
