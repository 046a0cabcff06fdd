"""Words that every role shares.

Where the contract says `json`, these classes have the value itself: what was read, or what is to be
written. Counts are whole numbers from 0 to 2^32 - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._records import record


@record()
@dataclass
class Usage:
    """Paid usage of a model. `cost_microdollars` is None where the price of a part is unknown."""

    input_tokens: int = 0
    # Of the input tokens.
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    output_tokens: int = 0
    # Of the output tokens.
    reasoning_tokens: int = 0
    cost_microdollars: float | None = None


@record()
@dataclass
class Criterion:
    """One line of a rubric. `check` names the pinned check that decides it, if one does."""

    id: str
    text: str
    check: str | None = None


@record()
@dataclass
class Issue:
    """Something specific that is wrong, with the criterion it breaks."""

    criterion: str | None
    text: str


@record(objects=("context", "settings"))
@dataclass
class Task:
    """A piece of work for an agent."""

    id: str
    instruction: str
    # Helpful facts of the harness: project, progress, earlier failures.
    context: dict[str, Any] = field(default_factory=dict)
    # Settings that the operator wrote for this agent.
    settings: dict[str, Any] = field(default_factory=dict)
    criteria: list[Criterion] = field(default_factory=list)
    # The evaluator's words about the round before; empty in the first round.
    feedback: list[Issue] = field(default_factory=list)
    # Counts from 1.
    round: int = 1


@record(outputs=("output",))
@dataclass
class Outcome:
    """The outcome of an agent. It cannot mark its own work as passing."""

    output: Any
    summary: str
    # Between 0 and 1, in the agent's own opinion.
    confidence: float | None = None
    unknowns: list[str] = field(default_factory=list)
