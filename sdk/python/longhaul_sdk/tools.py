"""Call the tools that were granted. For agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _host
from ._records import record
from .errors import Error
from .tool import Effect, Function, ToolInfo, ToolResult

__all__ = ["Effect", "Function", "ToolCall", "ToolInfo", "ToolResult", "available", "call", "call_many", "call_raw"]


@record(objects=("arguments",))
@dataclass
class ToolCall:
    """A call of a function of a tool."""

    tool: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)


def available() -> list[ToolInfo]:
    """The tools that were granted. The contract's `list`."""
    found: list[ToolInfo] = _host.call("tools", "list")
    return found


def call(tool: str, function: str, /, **arguments: Any) -> Any:
    """The output of a call: `call("notes", "save", name="a", text="b")`. Raises what the tool answered."""
    return call_raw(ToolCall(tool, function, arguments)).output


def call_raw(call: ToolCall) -> ToolResult:
    """As `call`, with whether the output was cut; one that was cut may be text that is JSON no more."""
    result: ToolResult = _host.call("tools", "call", call)
    return result


def call_many(calls: Sequence[ToolCall]) -> list[ToolResult | Error]:
    """Runs the calls beside each other; answers and errors come in their order, and none is raised."""
    answers: list[ToolResult | Error] = _host.call("tools", "call_many", list(calls))
    return answers
