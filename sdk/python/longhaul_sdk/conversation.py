"""Conversations with models. The host holds the context: it counts the tokens, and cuts the context back before it
exceeds the window.

For agents, planners and evaluators. A structured reply that cannot be read is answered once with its fault; nothing
else is retried here.
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
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@record()
@dataclass
class Image:
    """An image. `media_type` is `image/png`, `image/jpeg`, `image/webp` or `image/gif`."""

    media_type: str
    data: bytes


@record()
@dataclass
class ToolCallRequest:
    """A call of a tool that the model asks for. The result repeats `id`.

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
    """A message of one or several parts."""

    role: Role
    parts: list[Part]


@record(objects=("extra",))
@dataclass
class Options:
    """The options of a request."""

    # The name of the model in longhaul.toml. None: the first model that was granted.
    model: str | None = None
    # The most tokens of the reply. None: 4 096.
    output_tokens_max: int | None = None
    # The temperature, from 0 to 2. None: that of the model.
    temperature: float | None = None
    # The same seed and request give the same reply where the provider promises that. None: the provider chooses.
    seed: int | None = None
    # The form of the reply. A dict is the JSON Schema of it.
    format: Literal["text", "json"] | dict[str, Any] = "text"
    # The text that the reply starts with, and that `Reply.text` includes.
    prefill: str | None = None
    # Texts that end the reply: it is cut before the first of them.
    stop: list[str] = field(default_factory=list)
    # The ids of the granted tools that the model may ask for.
    offer_tools: list[str] = field(default_factory=list)
    # Further options; the host ignores those that it does not know.
    extra: dict[str, Any] = field(default_factory=dict)


@record()
class StopReason(enum.Enum):
    """The reason for which a reply ended. `LENGTH`: it reached `output_tokens_max`."""

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
    # The calls that the model asks for, in its order.
    calls: list[ToolCallRequest] = field(default_factory=list)
    reason: StopReason = StopReason.END
    usage: Usage = field(default_factory=Usage)
    # Further facts about the reply. Ignore unknown fields.
    extra: dict[str, Any] = field(default_factory=dict)


@record()
@dataclass
class ContextUsage:
    """The size of a conversation."""

    # The sum over all replies, and over the summaries that the host asked for.
    total: Usage
    # An estimate of the tokens in the context now.
    context_tokens: int
    # The window in tokens of the first model that was granted. None: unknown.
    context_tokens_max: int | None
    # The number of resets, by the plugin and by the host.
    resets: int


class Conversation:
    """A conversation with a model, whose context the host holds. `options` apply to each request without its own."""

    def __init__(self, system: str, options: Options | None = None) -> None:
        self.options = options or Options()
        self._raw = _host.open_conversation(system)

    def text(self, prompt: str) -> str:
        """Adds `prompt` as a text of the user, and returns the text of the reply."""
        self.user(prompt)
        return self.complete().text

    @overload
    def structured(self, prompt: str, kind: type[T], *, repairs_max: int = 1) -> T: ...
    @overload
    def structured(self, prompt: str, kind: Any, *, repairs_max: int = 1) -> Any: ...
    def structured(self, prompt: str, kind: Any, *, repairs_max: int = 1) -> Any:
        """Adds `prompt` as a text of the user, and returns the reply as a `kind`: a dataclass or another type with a
        schema.

        A reply that is not a `kind`, for example because it was cut, is answered with its fault at most
        `repairs_max` times. Then it raises InvalidError.
        """
        shape = shape_of(kind)
        return self.ask(prompt, shape.schema, lambda value: shape.read(value, ""), repairs_max)

    def json(self, prompt: str, schema: dict[str, Any], *, repairs_max: int = 1) -> Any:
        """As `structured`, for a JSON Schema. It checks only that the reply is JSON; providers hold their models to
        more.
        """
        return self.ask(prompt, schema, lambda value: value, repairs_max)

    def ask(self, prompt: str | None, schema: dict[str, Any], read: Callable[[Any], T], repairs_max: int) -> T:
        """As `json`. `read` may refuse the value with an InvalidError, whose text the model is told.

        Without a prompt no text is added: the context has the question already.
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
        """Adds a text of the user. A pinned one stays when the context is cut back or reset."""
        self.push(Message(Role.USER, [text]), pinned=pinned)

    def answer(self, answer: ToolCallResult) -> None:
        """Adds the result of a call that the model asked for."""
        self.push(Message(Role.TOOL, [answer]))

    def push(self, message: Message, *, pinned: bool = False) -> None:
        """Adds a message. A pinned one stays when the context is cut back or reset."""
        self._raw.push(message, pinned)

    def complete(self, options: Options | None = None) -> Reply:
        """Asks the model for a reply, and adds the reply to the context. Raises ContextFullError and RefusedError,
        too.
        """
        reply: Reply = self._raw.complete(options or self.options)
        return reply

    def usage(self) -> ContextUsage:
        """Returns the size of the conversation."""
        usage: ContextUsage = self._raw.usage()
        return usage

    def reset(self, summary: str) -> None:
        """Removes all messages but the pinned ones, and adds `summary` as a text of the user."""
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
