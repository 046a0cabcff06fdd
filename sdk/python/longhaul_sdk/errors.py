"""Failures of the host or of a plugin: one exception for each case of the contract.

Imports raise them, and what a plugin raises goes back to the host as the case of its role. What a
caller can act on keeps its fields: a refusal its fix, a limit its numbers, an outage its time. Any
other exception that leaves a plugin reaches the host as `failed(TypeName: text)`; nothing here
retries or hides one.
"""

from __future__ import annotations


class Error(Exception):
    """The base of all of them. Raise one of the classes below, not this one."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class FailedError(Error):
    """Anything that has no case of its own."""


class DeniedError(Error):
    """Not granted. `fix` is the line of which file would allow it."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(f"{reason}; to allow it, {fix}")
        self.reason = reason
        self.fix = fix


class LimitError(Error):
    """A cap was reached. `name` is the field of the limits, which carries the unit."""

    def __init__(self, name: str, used: float, max: float) -> None:
        super().__init__(f"limit `{name}` reached: {used:.15g} of {max:.15g}")
        self.name = name
        self.used = used
        self.max = max


class UnavailableError(Error):
    """A service is not there now. Without `retry_after_ms` nobody knows when it will be."""

    def __init__(self, reason: str, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_ms = retry_after_ms


class BlockedError(Error):
    """A question for a person, who must answer it first."""


class InvalidError(Error):
    """The request is malformed."""


# Of a model.


class ContextFullError(LimitError):
    """The message does not fit into the model's window; `Conversation.reset` makes room."""


class RefusedError(FailedError):
    """The model refused, in its own words."""

    def __str__(self) -> str:
        return f"the model refused: {self.text}"


# Of a tool.


class UnknownFunctionError(InvalidError):
    """The tool has no such function."""

    def __str__(self) -> str:
        return f"unknown function: {self.text}"


class InvalidArgumentsError(InvalidError):
    """The arguments do not fit the function; the text names the one that is wrong."""

    def __str__(self) -> str:
        return f"invalid arguments: {self.text}"


class TimedOutError(FailedError):
    """The call was given up after `ms` milliseconds."""

    def __init__(self, ms: int) -> None:
        super().__init__(f"timed out after {ms} ms")
        self.ms = ms


class OutcomeUnknownError(FailedError):
    """The tool cannot tell whether the call had its effect; the text says what broke."""

    def __str__(self) -> str:
        return f"{self.text}, and what the call did is unknown"


# Of checks, sub-agents, graphs, agents and planners.


class UnknownCheckError(InvalidError):
    """No check of that name is pinned."""

    def __str__(self) -> str:
        return f"unknown check: {self.text}"


class UnknownAgentError(InvalidError):
    """There is no agent of that name."""

    def __str__(self) -> str:
        return f"unknown agent: {self.text}"


class UnknownStepError(InvalidError):
    """The graph has no such step."""

    def __str__(self) -> str:
        return f"unknown step: {self.text}"


class ImpossibleError(FailedError):
    """Raised by an agent: the task cannot be done as written."""


class UnclearError(BlockedError):
    """Raised by a planner: the goal cannot be planned as written; the text is a question for a person."""
