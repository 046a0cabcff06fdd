"""Calls of the tools that the operator granted. For agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _host, jsontext
from ._records import record
from .errors import Error
from .tool import EffectClass, Function, ToolInfo, ToolResult

__all__ = ["EffectClass", "Function", "ToolCall", "ToolInfo", "ToolResult", "available", "call", "call_many", "call_raw"]


@record(objects=("arguments",))
@dataclass
class ToolCall:
    """A call of a function of a tool. `arguments` satisfy the schema of the function."""

    tool: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)


# The host keeps answers of so many bytes, under the number of their call.
_KEPT_BYTES_MIN = 4_000


class _Calls:
    """The calls of this invocation so far."""

    made = 0
    reads_again = False


def available() -> list[ToolInfo]:
    """Lists the granted tools, and the host's own tool `context` where there is one. The contract calls it `list`."""
    found: list[ToolInfo] = _host.call("tools", "list")
    _Calls.reads_again = any(
        tool.id == "context" and any(function.name == "read_again" for function in tool.functions) for tool in found
    )
    return found


def call(tool: str, function: str, /, **arguments: Any) -> Any:
    """Calls a function and returns its output: `call("notes", "save", name="a", text="b")`. Raises the error of the
    tool.
    """
    return call_raw(ToolCall(tool, function, arguments)).output


def call_raw(call: ToolCall) -> ToolResult:
    """As `call`, with a mark on an output that was cut, which may no longer be JSON."""
    _Calls.made += 1
    result: ToolResult = _host.call("tools", "call", call)
    return result


def call_many(calls: Sequence[ToolCall]) -> list[ToolResult | Error]:
    """Makes up to 64 calls concurrently. Results and errors are in the order of the calls; none is raised."""
    _Calls.made += len(calls)
    answers: list[ToolResult | Error] = _host.call("tools", "call_many", list(calls))
    return answers


def beginning(output: str, chars_max: int) -> str:
    """Returns the first `chars_max` characters of the output of the last call.

    A note says how much is missing and, where the host keeps the output, how to read on.
    """
    if len(output) <= chars_max or not _Calls.reads_again or len(output.encode()) < _KEPT_BYTES_MIN:
        return jsontext.cut(output, chars_max)
    arguments = jsontext.dumps({"id": f"call-{_Calls.made}"})
    missing = len(output) - chars_max
    return f"{output[:chars_max]}… ({missing} more characters; to read all of it, call context.read_again with {arguments})"
