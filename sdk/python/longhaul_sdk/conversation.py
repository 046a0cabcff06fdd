"""Talk with a model. The host owns the context: it counts its tokens and keeps it within the window.

For agents, planners and evaluators. A structured reply that cannot be read is sent back once with
what was wrong; nothing else is tried again here.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, overload

from . import _host, jsontext
from ._records import cases, record
from .errors import InvalidError
from .schema import shape_of
from .types import Usage

T = TypeVar("T")


@record()
class Role(enum.Enum):
    """Author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@record()
@dataclass
class Image:
    """`media_type` is `image/png`, `image/jpeg`, `image/webp` or `image/gif`."""

    media_type: str
    data: bytes


@record()
@dataclass
class ToolCallRequest:
    """A tool that the model asks for. `id` comes back with the answer.

    `arguments` is JSON as the model wrote it, which may be broken; `jsontext.loads_object` reads it.
    """

    id: str
    tool: str
    function: str
    arguments: str


@record(json=("output",))
@dataclass
class ToolCallResult:
    """The result of a call that the model asked for."""

    id: str
    output: Any
    failed: bool = False


Part = str | Image | ToolCallRequest | ToolCallResult


@record()
@dataclass
class Message:
    """A message, in one or several parts."""

    role: Role
    parts: list[Part]


@record(objects=("extra",))
@dataclass
class Options:
    """Settings of a request to the model."""

    # None: the model that the operator chose for this plugin.
    model: str | None = None
    # None: the operator's limit.
    output_tokens_max: int | None = None
    temperature: float | None = None
    # The same seed and request give the same reply where the provider can promise that.
    seed: int | None = None
    # A dict is the JSON Schema that the reply must satisfy.
    format: Literal["text", "json"] | dict[str, Any] = "text"
    # The reply starts with this text, which is part of `Reply.text`.
    prefill: str | None = None
    stop: list[str] = field(default_factory=list)
    # Tools that the model may ask for, of those that were granted.
    offer_tools: list[str] = field(default_factory=list)
    # Further options; the host ignores those that it does not know.
    extra: dict[str, Any] = field(default_factory=dict)


@record()
class StopReason(enum.Enum):
    """The reason for a reply's end; `LENGTH` is the limit of output tokens."""

    END = "end"
    LENGTH = "length"
    TOOLS = "tools"
    FILTERED = "filtered"
    OTHER = "other"


@record(objects=("extra",))
@dataclass
class Reply:
    """A reply of the model."""

    text: str
    calls: list[ToolCallRequest] = field(default_factory=list)
    reason: StopReason = StopReason.END
    usage: Usage = field(default_factory=Usage)
    # Further facts about the reply.
    extra: dict[str, Any] = field(default_factory=dict)


@record()
@dataclass
class ContextUsage:
    """The usage of a conversation, and the fill of its window."""

    total: Usage
    context_tokens: int
    # None: unknown.
    context_tokens_max: int | None
    resets: int


class Conversation:
    """A context of its own, held by the host. `options` are those of every question that has no others."""

    def __init__(self, system: str, options: Options | None = None) -> None:
        self.options = options or Options()
        self._raw = _host.open_conversation(system)

    def text(self, prompt: str) -> str:
        """Says `prompt` and gives the model's reply."""
        self.user(prompt)
        return self.complete().text

    @overload
    def structured(self, prompt: str, kind: type[T], *, repairs_max: int = 1) -> T: ...
    @overload
    def structured(self, prompt: str, kind: Any, *, repairs_max: int = 1) -> Any: ...
    def structured(self, prompt: str, kind: Any, *, repairs_max: int = 1) -> Any:
        """Says `prompt` and gives the model's reply as a `kind`: a dataclass or another type with a schema.

        A reply that is no `kind` even so, for example because it was cut, goes back with what was
        wrong at most `repairs_max` times, then it is an InvalidError.
        """
        shape = shape_of(kind)
        return self.ask(prompt, shape.schema, lambda value: shape.read(value, ""), repairs_max)

    def json(self, prompt: str, schema: dict[str, Any], *, repairs_max: int = 1) -> Any:
        """As `structured`, for a JSON Schema. Only that the reply is JSON is checked here; the host holds it to more."""
        return self.ask(prompt, schema, lambda value: value, repairs_max)

    def ask(self, prompt: str | None, schema: dict[str, Any], read: Callable[[Any], T], repairs_max: int) -> T:
        """As `json`, and `read` may refuse the value with an InvalidError that tells the model what is wrong.

        Without a prompt nothing is said before the question: the context has it all.
        """
        if prompt is not None:
            self.user(prompt)
        for repairs_left in range(repairs_max, -1, -1):
            reply = self.complete(replace(self.options, format=schema))
            try:
                return read(_value(reply))
            except InvalidError as wrong:
                if repairs_left == 0:
                    raise
                self.user(f"Your reply cannot be used: {wrong.text}. Reply with nothing but JSON of the wanted form.")
        raise AssertionError("the last try returns or raises")

    def user(self, text: str, *, pinned: bool = False) -> None:
        """Adds a text of the user. A pinned one survives compaction and reset: the task itself."""
        self.push(Message(Role.USER, [text]), pinned=pinned)

    def answer(self, answer: ToolCallResult) -> None:
        """Answers a tool that the model asked for."""
        self.push(Message(Role.TOOL, [answer]))

    def push(self, message: Message, *, pinned: bool = False) -> None:
        """Adds any message."""
        self._raw.push(message, pinned)

    def complete(self, options: Options | None = None) -> Reply:
        """Asks the model; its reply becomes part of the context. Raises ContextFullError and RefusedError, too."""
        reply: Reply = self._raw.complete(options or self.options)
        return reply

    def usage(self) -> ContextUsage:
        """The usage so far."""
        usage: ContextUsage = self._raw.usage()
        return usage

    def reset(self, summary: str) -> None:
        """Forgets everything but the system prompt, what is pinned, and this summary."""
        self._raw.reset(summary)


def _value(reply: Reply) -> Any:
    try:
        return jsontext.loads("the reply", reply.text)
    except InvalidError as wrong:
        found = jsontext.first_object(reply.text)
        if found is not None:
            return found
        if reply.reason is StopReason.LENGTH:
            raise InvalidError("the reply was cut at the limit of output tokens; be shorter") from None
        raise wrong


@cases("ReplyFormat")
def _format_case(value: Any) -> tuple[str, tuple[Any, ...]]:
    if isinstance(value, dict):
        return "Schema", (jsontext.dumps(value),)
    return str(value).capitalize(), ()


@cases("Part")
def _part_case(value: Part) -> tuple[str, tuple[Any, ...]]:
    names = {str: "Text", Image: "Image", ToolCallRequest: "ToolCall", ToolCallResult: "ToolResult"}
    return names.get(type(value), type(value).__name__), (value,)
