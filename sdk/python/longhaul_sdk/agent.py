"""The role of an agent: one task to one outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .types import Outcome, Task


class Agent(ABC):
    """Derive from it, write `run`, and mark the class with `@export`."""

    @abstractmethod
    def run(self, task: Task) -> Outcome:
        """Does the task. A new instance of the class is made for each call.

        Raise ImpossibleError when the task cannot be done as written, and BlockedError with a
        question for a person.
        """
