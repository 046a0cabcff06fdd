"""Errors of the host and of plugins: one exception for each case of the contract.

Imports raise them, and exceptions that leave a plugin become the case of its role. Exceptions that a caller can act
on have fields: a refusal has its fix, a limit its numbers, an outage its wait. Any other exception that leaves a
plugin reaches the host as `failed(TypeName: text)`. Nothing here retries or hides an error.
"""

from __future__ import annotations


class Error(Exception):
    """The base class of all errors. Raise one of the classes below."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class FailedError(Error):
    """Any other failure."""


class DeniedError(Error):
    """The operator does not allow it. `fix` is the change that would allow it: the file and the line to add."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(f"{reason}; to allow it, {fix}")
        self.reason = reason
        self.fix = fix


class LimitError(Error):
    """A limit was reached. `name` is the name of the limit, which contains the unit of `used` and `max`."""

    def __init__(self, name: str, used: float, max: float) -> None:
        super().__init__(f"limit `{name}` reached: {used:.15g} of {max:.15g}")
        self.name = name
        self.used = used
        self.max = max


class UnavailableError(Error):
    """A service is not available now. `retry_after_ms` is the wait that it asked for, in milliseconds; None: it did
    not say.
    """

    def __init__(self, reason: str, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_ms = retry_after_ms


class BlockedError(Error):
    """A person must answer a question first: the text."""


class InvalidError(Error):
    """The request or a value is not valid."""


# Of a model.


class ContextFullError(LimitError):
    """The context is longer than the window of the model, also after the host cut it back.

    `Conversation.reset` makes room.
    """


class RefusedError(FailedError):
    """The model refused. The text is its own."""

    def __str__(self) -> str:
        return f"the model refused: {self.text}"


# Of a tool.


class UnknownFunctionError(InvalidError):
    """There is no such function or tool."""

    def __str__(self) -> str:
        return f"unknown function: {self.text}"


class InvalidArgumentsError(InvalidError):
    """The arguments do not satisfy the schema of the function. The text names the place and the problem."""

    def __str__(self) -> str:
        return f"invalid arguments: {self.text}"


class TimedOutError(FailedError):
    """The host gave the call up after `ms` milliseconds."""

    def __init__(self, ms: int) -> None:
        super().__init__(f"timed out after {ms} ms")
        self.ms = ms


class OutcomeUnknownError(FailedError):
    """The tool cannot tell whether the call had its effect. The text says what broke."""

    def __str__(self) -> str:
        return f"{self.text}, and what the call did is unknown"


# Of checks, sub-agents, graphs, agents and planners.


class UnknownCheckError(InvalidError):
    """There is no check of that name."""

    def __str__(self) -> str:
        return f"unknown check: {self.text}"


class UnknownAgentError(InvalidError):
    """There is no agent of that name."""

    def __str__(self) -> str:
        return f"unknown agent: {self.text}"


class UnknownStepError(InvalidError):
    """The graph has no step of that name."""

    def __str__(self) -> str:
        return f"unknown step: {self.text}"


class ImpossibleError(FailedError):
    """The task of an agent cannot be done as written."""


class UnclearError(BlockedError):
    """The goal of a planner cannot be planned as written. The text is a question for a person."""
