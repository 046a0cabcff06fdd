"""Hand work to a sub-agent with a fresh context. For agents."""

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
    """A task and the name of the agent that is to do it."""

    agent: str
    task: Task


def run(agent: str, task: Task) -> Outcome:
    """Waits for the outcome. Raises UnknownAgentError, and BlockedError when a person must answer first."""
    outcome: Outcome = _host.call("delegate", "run", Assignment(agent, task))
    return outcome


def run_many(assignments: Sequence[Assignment]) -> list[Outcome | Error]:
    """Runs them beside each other; answers and errors come in their order, and none is raised."""
    answers: list[Outcome | Error] = _host.call("delegate", "run_many", list(assignments))
    return answers
