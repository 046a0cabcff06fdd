"""The exports of the five roles, and the case of its error that each exception becomes in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import errors, tool
from .agent import Agent
from .evaluator import Evaluator
from .memory import Memory, MemoryContext
from .planner import Planner
from .tool import Tool


@dataclass(frozen=True)
class Role:
    """A role."""

    base: type
    # The exported interface, and the class that the generated bindings look for.
    interface: str
    export_name: str
    # The error variant, and the case for a kind of exception, the first that fits.
    variant: str
    error_cases: tuple[tuple[type[errors.Error], str], ...]
    # The work of an export, given the plugin's class and the arguments.
    exports: dict[str, Callable[..., Any]]

    def error_case(self, error: errors.Error) -> str:
        """Falls back to `Failed`, which every role has."""
        return next((case for kind, case in self.error_cases if isinstance(error, kind)), "Failed")


_SERVICES: tuple[tuple[type[errors.Error], str], ...] = (
    (errors.DeniedError, "Denied"),
    (errors.LimitError, "Limit"),
    (errors.UnavailableError, "Unavailable"),
)


def _opened(cls: type[Memory], context: MemoryContext | None) -> Memory:
    """A backend for one call; unit tests may leave the context out."""
    backend = cls()
    backend.context = context or MemoryContext()
    return backend


ROLES = (
    Role(
        Agent,
        "agent",
        "Agent",
        "AgentError",
        (*_SERVICES, (errors.ImpossibleError, "Impossible"), (errors.BlockedError, "Blocked")),
        {"run": lambda cls, task: cls().run(task)},
    ),
    Role(
        Planner,
        "planner",
        "Planner",
        "PlanError",
        (*_SERVICES, (errors.BlockedError, "Unclear")),
        {
            "plan": lambda cls, goal: cls().plan(goal),
            "replan": lambda cls, goal, plan, results: cls().replan(goal, plan, results),
            "synthesize": lambda cls, goal, results: cls().synthesize(goal, results),
        },
    ),
    Role(
        Evaluator,
        "evaluator",
        "Evaluator",
        "JudgeError",
        _SERVICES,
        {"judge": lambda cls, subject, rubric: cls().judge(subject, rubric)},
    ),
    Role(
        Tool,
        "tool",
        "Tool",
        "ToolError",
        (
            *_SERVICES,
            (errors.UnknownFunctionError, "UnknownFunction"),
            (errors.InvalidError, "InvalidArguments"),
            (errors.TimedOutError, "TimedOut"),
            (errors.OutcomeUnknownError, "OutcomeUnknown"),
        ),
        {
            "describe": lambda cls, settings: tool.describe(cls),
            "prepare": lambda cls, function, arguments, context: tool.prepare(cls(), function, arguments, context),
            "verify": lambda cls, function, arguments, prepared, context: tool.verify(
                cls(), function, arguments, prepared, context
            ),
            "call": lambda cls, function, arguments, context: tool.call(cls(), function, arguments, context),
        },
    ),
    Role(
        Memory,
        "memory",
        "Memory",
        "MemoryError",
        (*_SERVICES, (errors.InvalidError, "Invalid")),
        {
            "put": lambda cls, namespace, entry, context=None: _opened(cls, context).put(namespace, entry),
            "get": lambda cls, namespace, key, context=None: _opened(cls, context).get(namespace, key),
            "search": lambda cls, namespace, query, limit, context=None: _opened(cls, context).search(
                namespace, query, limit
            ),
            "delete": lambda cls, namespace, key, context=None: _opened(cls, context).delete(namespace, key),
            "list": lambda cls, namespace, prefix, cursor, limit, context=None: _opened(cls, context).list_keys(
                namespace, prefix, cursor, limit
            ),
        },
    ),
)


def role_of(cls: type) -> Role:
    """Raises TypeError for a class of no role."""
    for role in ROLES:
        if issubclass(cls, role.base):
            return role
    bases = ", ".join(role.base.__name__ for role in ROLES)
    raise TypeError(f"`{cls.__name__}` has no role; derive it from one of {bases}")
