"""The role of a planner: it makes plans of goals and answers of results, and does not do the work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from ._records import record
from .types import Criterion, Issue, Outcome


@record(objects=("context", "settings"))
@dataclass
class Goal:
    """A goal."""

    # The goal in the words of its author.
    text: str
    # Facts that may help, such as the names of agents and native checks. Ignore unknown fields.
    context: dict[str, Any] = field(default_factory=dict)
    # The settings that the operator wrote for this planner.
    settings: dict[str, Any] = field(default_factory=dict)
    # Criteria for the result as a whole. May be empty.
    criteria: list[Criterion] = field(default_factory=list)


# The reaction to a step that has failed.


@record("OnFailure_Retry")
@dataclass
class Retry:
    """Try the step again, this many times and at most 5. Then ask the planner for another plan."""

    times: int = 1


@record("OnFailure_Skip")
@dataclass
class Skip:
    """Go on without the step."""


@record("OnFailure_Replan")
@dataclass
class Replan:
    """Ask the planner for another plan."""


@record("OnFailure_Abort")
@dataclass
class Abort:
    """End the run as incomplete."""


OnFailure = Retry | Skip | Replan | Abort


# The content of a check.


@record()
@dataclass
class CheckSource:
    """Source code. `language` is `python`; the host refuses a plan with another one."""

    language: str
    text: str


@record("CheckBody_Source")
@dataclass
class SourceCheck:
    """Source code, which the host runs in the sandbox on a read-only copy of the work."""

    source: CheckSource


def python_check(source: str) -> SourceCheck:
    """Returns a check that runs Python source."""
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
    """A check of a step, by a name that is unique within the step. The host pins it before the work starts."""

    name: str
    body: CheckBody


@record()
@dataclass
class PlanStep:
    """A step of a plan: one feature, and one commit. Outside of an ask it needs a criterion or a check."""

    # Unique within the plan: at most 64 letters, digits, hyphens and underscores.
    id: str
    # One line for people, and the subject of the commit.
    title: str
    # The instruction to the agent. Not empty.
    instruction: str
    # `functional`, `ui`, `performance`, `security`, `integration`, `testing` or `documentation`.
    category: str = "functional"
    # From 1 to 10; a higher one goes first.
    priority: int = 5
    # The name of the agent in longhaul.toml. None: the host chooses by category.
    agent: str | None = None
    # The criteria. Empty: each check is a criterion.
    criteria: list[Criterion] = field(default_factory=list)
    checks: list[CheckSpec] = field(default_factory=list)
    # The ids of the steps that must pass before.
    depends_on: list[str] = field(default_factory=list)
    # The reaction where the step fails.
    on_failure: OnFailure = field(default_factory=Retry)


@record()
@dataclass
class WorkPlan:
    """A plan: at least one step, and notes for people."""

    steps: list[PlanStep]
    notes: str = ""


@record()
@dataclass
class PlanStepResult:
    """The result of a step. `outcome` is None where the agent came to none."""

    step: str
    passed: bool
    outcome: Outcome | None = None
    issues: list[Issue] = field(default_factory=list)


@record(json=("answer",))
@dataclass
class Synthesis:
    """The answer to a goal."""

    answer: Any
    # The planner's own estimate that the answer is right, from 0 to 1. None: no estimate.
    confidence: float | None = None
    # Contradictions between results, one per item.
    conflicts: list[str] = field(default_factory=list)
    # Open questions, one per item.
    unknowns: list[str] = field(default_factory=list)


class Planner(ABC):
    """The base class of a planner. Write its three methods, and mark the class with `@export`.

    A new instance of the class is made for each call. Raise UnclearError with a question for a person when the goal
    cannot be planned as written. The methods must make the same calls in the same order each time.
    """

    @abstractmethod
    def plan(self, goal: Goal) -> WorkPlan:
        """Makes a plan for a goal."""

    @abstractmethod
    def replan(self, goal: Goal, plan: WorkPlan, results: list[PlanStepResult]) -> WorkPlan:
        """Makes a plan for what is left of a goal. Steps that passed stay; the host drops others that it does not
        name.
        """

    @abstractmethod
    def synthesize(self, goal: Goal, results: list[PlanStepResult]) -> Synthesis:
        """Makes the answer to a goal from the results of the steps that passed."""
