"""Types that all roles share.

Where the contract says `json`, these classes have the value itself. Counts are whole numbers from 0 to 2^32 - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._records import record


@record()
@dataclass
class Usage:
    """The tokens and the cost of one reply of a model, or of several."""

    # Tokens that the model read, the cached ones included.
    input_tokens: int = 0
    # Tokens among `input_tokens` that the provider had cached.
    cached_tokens: int = 0
    # Tokens among `input_tokens` that the provider put into its cache, where it charges extra for that.
    cache_written_tokens: int = 0
    # Tokens that the model wrote, those of its reasoning included.
    output_tokens: int = 0
    # Tokens among `output_tokens` that the model wrote for its reasoning.
    reasoning_tokens: int = 0
    # The cost in millionths of a US dollar. None: the price of a part is unknown.
    cost_microdollars: float | None = None


@record()
@dataclass
class Criterion:
    """A criterion of a rubric."""

    # The id, unique among the criteria of a feature.
    id: str
    # The statement that must hold.
    text: str
    # The name of the pinned check that decides it. None: the evaluator decides by reading.
    check: str | None = None


@record()
@dataclass
class Issue:
    """A specific defect of the work, and the id of the criterion that it breaks (None: no single one)."""

    criterion: str | None
    text: str


@record(objects=("context", "settings"))
@dataclass
class Task:
    """A piece of work for an agent."""

    # The id of the feature that the task belongs to.
    id: str
    # The instruction to the agent.
    instruction: str
    # Facts that may help, such as the goal, recent progress and earlier failures. Ignore unknown fields.
    context: dict[str, Any] = field(default_factory=dict)
    # The settings that the operator wrote for this agent.
    settings: dict[str, Any] = field(default_factory=dict)
    # The criteria that the work is judged by.
    criteria: list[Criterion] = field(default_factory=list)
    # The issues of the previous round. Empty in the first round.
    feedback: list[Issue] = field(default_factory=list)
    # The number of the round, from 1. In an ask it is the number of the attempt.
    round: int = 1


@record(outputs=("output",))
@dataclass
class Outcome:
    """The result of an agent. An agent cannot mark its own work as passing."""

    # The result, any JSON value.
    output: Any
    # One or two lines for people.
    summary: str
    # The agent's own estimate that the task is done, from 0 to 1. None: no estimate.
    confidence: float | None = None
    # Open questions, one per item.
    unknowns: list[str] = field(default_factory=list)
