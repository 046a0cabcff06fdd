"""The role of an agent: it does tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .types import Outcome, Task


class Agent(ABC):
    """The base class of an agent. Write `run`, and mark the class with `@export`."""

    @abstractmethod
    def run(self, task: Task) -> Outcome:
        """Does the task. A new instance of the class is made for each call.

        Raise ImpossibleError when the task cannot be done as written, and BlockedError with a question for a
        person. The method must make the same calls in the same order each time, as it does while all that it
        depends on comes from the task and from imports.
        """
