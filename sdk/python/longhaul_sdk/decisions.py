"""The decision log of the project: decisions and their outcomes. For agents and planners."""

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
    """A decision."""

    # The situation in which the decision was made.
    context: str
    # The decision.
    decision: str
    # The reasons for it.
    reasoning: str
    # Words to find the decision by.
    tags: list[str] = field(default_factory=list)
    # The outcome of the decision.
    outcome: DecisionOutcome = DecisionOutcome.OPEN
    # The lesson of the outcome. None: there is none yet.
    lesson: str | None = None


@_record()
@dataclass
class FoundDecision:
    """A decision that a search found."""

    # The id that `record` returned.
    id: str
    # The time at which the decision was recorded, in milliseconds since 1970-01-01 UTC.
    at_ms: float
    decision: Decision


def record(decision: Decision) -> str:
    """Adds a decision to the log, and returns its id.

    Raises LimitError above 64 KiB as JSON, or where the decisions of the run reach their limit.
    """
    return str(_host.call("decisions", "record", decision))


def find(query: str, limit: int = 10) -> list[FoundDecision]:
    """Finds at most `limit` decisions that fit the query, the best first, among the newest 2 000 of the project."""
    found: list[FoundDecision] = _host.call("decisions", "find", query, limit)
    return found
