"""The role of a planner: it plans and reviews, and does not execute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from ._records import record
from .types import Criterion, Issue, Outcome


@record(objects=("context", "settings"))
@dataclass
class Goal:
    """The goal of a run."""

    text: str
    # Project, files at hand, native checks that may be named.
    context: dict[str, Any] = field(default_factory=dict)
    # Settings that the operator wrote for this planner.
    settings: dict[str, Any] = field(default_factory=dict)
    criteria: list[Criterion] = field(default_factory=list)


# The consequence of a step's failure.


@record("OnFailure_Retry")
@dataclass
class Retry:
    """Try again, so many times."""

    times: int = 1


@record("OnFailure_Skip")
@dataclass
class Skip:
    """Go on without it."""


@record("OnFailure_Replan")
@dataclass
class Replan:
    """Ask the planner again."""


@record("OnFailure_Abort")
@dataclass
class Abort:
    """End the run."""


OnFailure = Retry | Skip | Replan | Abort


# A check that is pinned, with this very text, when the work starts.


@record()
@dataclass
class CheckSource:
    """Source code. `language` is `python`; the host refuses a plan with another one."""

    language: str
    text: str


@record("CheckBody_Source")
@dataclass
class SourceCheck:
    """Source code, run in the sandbox on a read-only copy of the work."""

    source: CheckSource


def python_check(source: str) -> SourceCheck:
    """A check that runs Python source."""
    return SourceCheck(CheckSource("python", source))


@record("CheckBody_Native")
@dataclass
class NativeCheck:
    """A check of `[checks]` in longhaul.toml, by its name."""

    name: str


CheckBody = SourceCheck | NativeCheck


@record()
@dataclass
class CheckSpec:
    """A check that a step brings."""

    name: str
    body: CheckBody


@record()
@dataclass
class PlanStep:
    """A piece of the plan, which becomes one task for an agent."""

    id: str
    title: str
    instruction: str
    # `functional`, `ui`, `performance`, `security`, `integration`, `testing` or `documentation`.
    category: str = "functional"
    # 1 to 10; higher goes first.
    priority: int = 5
    # None: the harness chooses by category.
    agent: str | None = None
    criteria: list[Criterion] = field(default_factory=list)
    checks: list[CheckSpec] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)
    on_failure: OnFailure = field(default_factory=Retry)


@record()
@dataclass
class WorkPlan:
    """Steps, and notes for people."""

    steps: list[PlanStep]
    notes: str = ""


@record()
@dataclass
class PlanStepResult:
    """The result of a step. `outcome` is None for one that never ended."""

    step: str
    passed: bool
    outcome: Outcome | None = None
    issues: list[Issue] = field(default_factory=list)


@record(json=("answer",))
@dataclass
class Synthesis:
    """One answer from the outcomes of all steps."""

    answer: Any
    # Between 0 and 1, in the planner's own opinion.
    confidence: float | None = None
    conflicts: list[str] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)


class Planner(ABC):
    """Derive from it, write its three methods, and mark the class with `@export`.

    A new instance of the class is made for each call. Raise UnclearError with a question for a
    person when the goal cannot be planned as written.
    """

    @abstractmethod
    def plan(self, goal: Goal) -> WorkPlan:
        """The steps to the goal."""

    @abstractmethod
    def replan(self, goal: Goal, plan: WorkPlan, results: list[PlanStepResult]) -> WorkPlan:
        """The steps that are left, after what came of the earlier ones."""

    @abstractmethod
    def synthesize(self, goal: Goal, results: list[PlanStepResult]) -> Synthesis:
        """The answer to the goal, from what came of the steps."""
