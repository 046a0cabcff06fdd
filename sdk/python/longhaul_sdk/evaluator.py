"""The role of an evaluator: it judges work by a rubric, and sees nothing of how the work was made."""

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
    """A named text that supports a judgement, such as a changed file by its path."""

    name: str
    content: str


@record(outputs=("output",), objects=("context",))
@dataclass
class Subject:
    """The work to judge."""

    # The instruction that the agent was given.
    instruction: str
    # The output of the agent.
    output: Any
    # The files that the work changed, and further texts; long ones are cut.
    evidence: list[Evidence] = field(default_factory=list)
    # Further facts that may help to judge. Ignore unknown fields.
    context: dict[str, Any] = field(default_factory=dict)


@record(objects=("settings",))
@dataclass
class Rubric:
    """The criteria to judge by."""

    # The criteria. Each needs a judgement.
    criteria: list[Criterion]
    # The settings that the operator wrote for this evaluator.
    settings: dict[str, Any] = field(default_factory=dict)


@record()
class Mark(enum.Enum):
    """The mark of a criterion. `UNKNOWN` counts as not passed."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


@record()
@dataclass
class Judgement:
    """The judgement of one criterion, by its id. `reason` is one line."""

    criterion: str
    mark: Mark
    reason: str


@record()
@dataclass
class Verdict:
    """The result: one judgement for each criterion, and the issues for the next round."""

    judgements: list[Judgement]
    issues: list[Issue] = field(default_factory=list)


class Evaluator(ABC):
    """The base class of an evaluator. Write `judge`, and mark the class with `@export`."""

    @abstractmethod
    def judge(self, subject: Subject, rubric: Rubric) -> Verdict:
        """Judges each criterion. A new instance of the class is made for each call."""
