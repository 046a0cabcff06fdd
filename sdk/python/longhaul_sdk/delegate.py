"""Delegation of work to other agents. For agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import _host
from ._records import record
from .errors import Error
from .types import Outcome, Task


@record()
@dataclass
class Assignment:
    """A task for the agent of this name in longhaul.toml."""

    agent: str
    task: Task


def run(agent: str, task: Task) -> Outcome:
    """Runs an agent on a task, and waits for the outcome.

    Raises UnknownAgentError for another name, and BlockedError where the agent needs an answer from a person.
    """
    outcome: Outcome = _host.call("delegate", "run", Assignment(agent, task))
    return outcome


def run_many(assignments: Sequence[Assignment]) -> list[Outcome | Error]:
    """Runs up to 64 assignments concurrently. Outcomes and errors are in the order of the assignments; none is raised.
    """
    answers: list[Outcome | Error] = _host.call("delegate", "run_many", list(assignments))
    return answers
