"""The role of an evaluator: it sees the output and the rubric, never how the output came to be."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from ._records import record
from .types import Criterion, Issue


@record()
@dataclass
class Evidence:
    """For example a file that the work changed, by its path."""

    name: str
    content: str


@record(outputs=("output",), objects=("context",))
@dataclass
class Subject:
    """The work that is judged."""

    instruction: str
    output: Any
    evidence: list[Evidence] = field(default_factory=list)
    # Helpful facts of the host.
    context: dict[str, Any] = field(default_factory=dict)


@record(objects=("settings",))
@dataclass
class Rubric:
    """The criteria. `settings` are the operator's for this evaluator."""

    criteria: list[Criterion]
    settings: dict[str, Any] = field(default_factory=dict)


@record()
class Mark(enum.Enum):
    """Never a score."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


@record()
@dataclass
class Judgement:
    """One criterion, by its id, one mark, one line of reason."""

    criterion: str
    mark: Mark
    reason: str


@record()
@dataclass
class Verdict:
    """A judgement for each criterion, and what is wrong in particular."""

    judgements: list[Judgement]
    issues: list[Issue] = field(default_factory=list)


class Evaluator(ABC):
    """Derive from it, write `judge`, and mark the class with `@export`."""

    @abstractmethod
    def judge(self, subject: Subject, rubric: Rubric) -> Verdict:
        """Judges each criterion. A new instance of the class is made for each call."""
