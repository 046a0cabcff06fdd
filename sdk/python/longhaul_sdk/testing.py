"""A host for unit tests in plain Python: its answers are scripted, and its state can be inspected.

It replaces the imports, and not the sandbox: it counts no limits, checks no grants, and gives every role every
import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _host, jsontext
from ._export import dispatch
from ._roles import role_of
from .artifact import SavedArtifact
from .checks import CheckInfo, CheckReport
from .conversation import ContextUsage, Message, Options, Reply, Role
from .decisions import Decision, FoundDecision
from .delegate import Assignment
from .errors import Error, FailedError, InvalidError, UnknownAgentError, UnknownCheckError, UnknownFunctionError, UnknownStepError
from .graph import GraphChanges, GraphDiagnosis, GraphFormat, GraphPatch, GraphReplay, GraphStep
from .keyvalue import KeyPage
from .recall import Remembered, Tier
from .tool import CallContext, EffectClass, Function, Tool, ToolInfo, ToolResult
from .tools import ToolCall
from .types import Outcome, Task, Usage

# A reply of a model: a text, an error that is raised, a whole Reply, or a value that becomes JSON.
ScriptedReply = Any


@dataclass
class Request:
    """A request to a model."""

    system: str
    messages: list[Message]
    options: Options

    @property
    def last(self) -> str:
        """The last text in the messages. Empty: there is none."""
        texts = [part for message in self.messages for part in message.parts if isinstance(part, str)]
        return texts[-1] if texts else ""


@dataclass
class FakeTool:
    """A tool of plain callables, which get the arguments by name."""

    id: str
    functions: Mapping[str, Callable[..., Any]]
    description: str = ""


@dataclass
class Host:
    """A host for the calls of `longhaul_sdk` within `with`.

    `replies` are given one after the other; a callable is called with the Request. A check is a report, or whether
    it passes. An agent is a callable from task to outcome. Steps of graphs are kept and do not run: `graph_runs`
    has the result of each run, in order, and the two maps have the diagnosis and the patch of a step.
    """

    replies: Iterable[ScriptedReply] = ()
    tools: Sequence[type[Tool] | FakeTool] = ()
    checks: Mapping[str, bool | CheckReport] = field(default_factory=dict)
    agents: Mapping[str, Callable[[Task], Outcome]] = field(default_factory=dict)
    graph_runs: Iterable[GraphReplay] = ()
    graph_diagnoses: Mapping[str, GraphDiagnosis] = field(default_factory=dict)
    graph_patches: Mapping[str, GraphPatch] = field(default_factory=dict)
    # The time of the clock, in milliseconds since 1970-01-01 UTC. A `sleep` moves it.
    now_ms: float = 1_750_000_000_000.0

    # The state that the plugin left.
    keyvalue: dict[str, bytes] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)
    progress: list[tuple[str, str, list[str]]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    remembered: dict[tuple[Tier, str], Any] = field(default_factory=dict)
    saved_artifact: SavedArtifact | None = None
    graphs: dict[str, dict[str, str]] = field(default_factory=dict)
    slept_ms: int = 0

    def __post_init__(self) -> None:
        self._replies = iter(self.replies)
        self._graph_runs = iter(self.graph_runs)
        self._spaces: dict[str, dict[str, bytes]] = {}
        self._outer: _host.Backend | None = None

    def __enter__(self) -> Host:
        self._outer, _host.backend = _host.backend, _Imports(self)
        return self

    def __exit__(self, *raised: object) -> None:
        _host.backend = self._outer

    def run(self, plugin: type, export: str, *arguments: Any) -> Any:
        """Calls an export by its name in the contract: `host.run(Reporter, "run", task)`.

        As in a component, an exception outside of `longhaul_sdk.errors` becomes a FailedError.
        """
        return dispatch(role_of(plugin), plugin, export, *arguments)

    def call(
        self, tool: type[Tool], function: str, arguments: dict[str, Any] | str, context: CallContext | None = None
    ) -> Any:
        """Calls a function of a tool and returns its output. `arguments` may be JSON text, also broken."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        result: ToolResult = self.run(tool, "call", function, text, context or CallContext())
        return _through_json(result.output)

    # For the imports below.

    def next_reply(self, request: Request) -> Reply:
        """Takes the next reply of the script."""
        self.requests.append(request)
        try:
            reply = next(self._replies)
        except StopIteration:
            raise FailedError(f"the script has no reply left, to: {request.last}") from None
        if callable(reply):
            reply = reply(request)
        if isinstance(reply, Error):
            raise reply
        if isinstance(reply, Reply):
            return reply
        usage = Usage(input_tokens=1, output_tokens=1, cost_microdollars=0.0)
        return Reply(reply if isinstance(reply, str) else jsontext.dumps(reply), usage=usage)

    def call_tool(self, call: ToolCall) -> ToolResult:
        """Calls a tool of the script. A Tool has a key-value space of its own."""
        self.calls.append(call)
        tool = next((tool for tool in self.tools if tool.id == call.tool), None)
        if tool is None:
            raise FailedError(f"there is no tool `{call.tool}`")
        if isinstance(tool, FakeTool):
            if call.function not in tool.functions:
                raise UnknownFunctionError(call.function)
            return ToolResult(_through_json(tool.functions[call.function](**call.arguments)))
        own, self.keyvalue = self.keyvalue, self._spaces.setdefault(tool.id, {})
        try:
            return ToolResult(self.call(tool, call.function, call.arguments))
        finally:
            self.keyvalue = own


class _Conversation:
    """The resource `conversation`."""

    def __init__(self, host: Host, system: str) -> None:
        self._host = host
        self._system = system
        self._messages: list[tuple[Message, bool]] = []
        self._resets = 0

    def push(self, message: Message, pinned: bool) -> None:
        self._messages.append((message, pinned))

    def complete(self, options: Options) -> Reply:
        reply = self._host.next_reply(Request(self._system, [message for message, _ in self._messages], options))
        self.push(Message(Role.ASSISTANT, [reply.text, *reply.calls]), False)
        return reply

    def usage(self) -> ContextUsage:
        return ContextUsage(Usage(cost_microdollars=0.0), 0, None, self._resets)

    def reset(self, summary: str) -> None:
        self._messages = [(message, pinned) for message, pinned in self._messages if pinned]
        self.push(Message(Role.USER, [summary]), False)
        self._resets += 1


class _Imports:
    """The backend: a method `INTERFACE_FUNCTION` for each import."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def open_conversation(self, system: str) -> _host.RawConversation:
        return _Conversation(self._host, system)

    def call(self, interface: str, function: str, *arguments: Any) -> Any:
        return getattr(self, f"_{interface}_{function}")(*arguments)

    def _tools_list(self) -> list[ToolInfo]:
        return [_describe(tool) for tool in self._host.tools]

    def _tools_call(self, call: ToolCall) -> ToolResult:
        return self._host.call_tool(call)

    def _tools_call_many(self, calls: list[ToolCall]) -> list[ToolResult | Error]:
        return [_answer(self._host.call_tool, call) for call in calls]

    def _checks_list(self) -> list[CheckInfo]:
        return [CheckInfo(name, "") for name in self._host.checks]

    def _checks_run(self, name: str) -> CheckReport:
        if name not in self._host.checks:
            raise UnknownCheckError(name)
        report = self._host.checks[name]
        return CheckReport(name, report, int(not report)) if isinstance(report, bool) else report

    def _delegate_run(self, assignment: Assignment) -> Outcome:
        if assignment.agent not in self._host.agents:
            raise UnknownAgentError(assignment.agent)
        return self._host.agents[assignment.agent](assignment.task)

    def _delegate_run_many(self, assignments: list[Assignment]) -> list[Outcome | Error]:
        return [_answer(self._delegate_run, assignment) for assignment in assignments]

    def _recall_remember(self, tier: Tier, key: str, value: str) -> None:
        self._host.remembered[tier, key] = json.loads(value)

    def _recall_fetch(self, tier: Tier, key: str) -> str | None:
        known = self._host.remembered
        return json.dumps(known[tier, key]) if (tier, key) in known else None

    def _recall_search(self, query: str, limit: int) -> list[Remembered]:
        words = query.lower().split()
        found = []
        for (tier, key), value in self._host.remembered.items():
            text = f"{key} {json.dumps(value)}".lower()
            score = sum(word in text for word in words) / max(1, len(words))
            if score > 0:
                found.append(Remembered(key, value, tier, score))
        return sorted(found, key=lambda hit: -hit.score)[:limit]

    def _decisions_record(self, decision: Decision) -> str:
        self._host.decisions.append(decision)
        return f"d-{len(self._host.decisions)}"

    def _decisions_find(self, query: str, limit: int) -> list[FoundDecision]:
        words = query.lower().split()
        found = [
            FoundDecision(f"d-{number}", 0.0, decision)
            for number, decision in enumerate(self._host.decisions, 1)
            if any(word in str(decision).lower() for word in words)
        ]
        return found[:limit]

    def _progress_add(self, action: str, outcome: str, files: list[str]) -> None:
        self._host.progress.append((action, outcome, files))

    def _artifact_load(self) -> SavedArtifact | None:
        return self._host.saved_artifact

    def _artifact_save(self, state: str, summary: str) -> None:
        last = self._host.saved_artifact
        number = last.save_number + 1 if last else 1
        self._host.saved_artifact = SavedArtifact(number, json.loads(state), summary)

    def _graph_add_step(self, graph: str, step: str, source: str) -> GraphChanges:
        steps = self._host.graphs.setdefault(graph, {})
        if step in steps:
            raise InvalidError(f"there is a step `{step}` already")
        steps[step] = source
        return GraphChanges([step])

    def _graph_change_step(self, graph: str, step: str, source: str) -> GraphChanges:
        self._graph_steps(graph, step)[step] = source
        return GraphChanges([step])

    def _graph_remove_step(self, graph: str, step: str) -> GraphChanges:
        del self._graph_steps(graph, step)[step]
        return GraphChanges()

    def _graph_run(self, graph: str, keep_going: bool) -> GraphReplay:
        return self._graph_replayed(self._graph_steps(graph))

    def _graph_replay(self, graph: str, step: str) -> GraphReplay:
        return self._graph_replayed(self._graph_steps(graph, step))

    def _graph_stale(self, graph: str) -> list[str]:
        return list(self._graph_steps(graph))

    def _graph_show(self, graph: str) -> list[GraphStep]:
        return [GraphStep(step, source) for step, source in self._graph_steps(graph).items()]

    def _graph_diagnose(self, graph: str, step: str | None) -> GraphDiagnosis:
        return self._graph_found(self._host.graph_diagnoses, graph, step)

    def _graph_patch(self, graph: str, step: str | None) -> GraphPatch:
        patch: GraphPatch = self._graph_found(self._host.graph_patches, graph, step)
        self._graph_steps(graph)[patch.step] = patch.source
        return patch

    def _graph_export_graph(self, graph: str, format: GraphFormat) -> str:
        steps = self._graph_steps(graph)
        if format is GraphFormat.JSON:
            return json.dumps({"steps": [{"id": step, "source": source} for step, source in steps.items()]})
        return "digraph {" + "".join(f" {json.dumps(step)};" for step in steps) + " }"

    def _graph_steps(self, graph: str, step: str | None = None) -> dict[str, str]:
        steps = self._host.graphs.get(graph)
        if steps is None:
            raise InvalidError(f"there is no graph `{graph}`")
        if step is not None and step not in steps:
            raise UnknownStepError(step)
        return steps

    def _graph_replayed(self, steps: dict[str, str]) -> GraphReplay:
        # Where nothing is scripted, all steps run and none fails.
        return next(self._host._graph_runs, None) or GraphReplay(ran=list(steps))

    def _graph_found(self, scripted: Mapping[str, Any], graph: str, step: str | None) -> Any:
        self._graph_steps(graph, step)
        name = step or next(iter(scripted), None)
        if name not in scripted:
            raise InvalidError("no step of this graph failed")
        return scripted[name]

    def _keyvalue_get(self, key: str) -> bytes | None:
        return self._host.keyvalue.get(key)

    def _keyvalue_set(self, key: str, value: bytes) -> None:
        self._host.keyvalue[key] = bytes(value)

    def _keyvalue_delete(self, key: str) -> None:
        self._host.keyvalue.pop(key, None)

    def _keyvalue_exists(self, key: str) -> bool:
        return key in self._host.keyvalue

    def _keyvalue_list_keys(self, prefix: str, cursor: str | None) -> KeyPage:
        # Pages of three, so that a plugin that forgets the cursor is found out.
        keys = sorted(key for key in self._host.keyvalue if key.startswith(prefix) and key > (cursor or ""))
        return KeyPage(keys[:3], keys[2] if len(keys) > 3 else None)

    def _clock_now_ms(self) -> float:
        return self._host.now_ms

    def _timer_sleep(self, duration_ms: int) -> None:
        self._host.slept_ms += duration_ms
        self._host.now_ms += duration_ms

    def _log_write(self, level: Any, text: str) -> None:
        self._host.log.append((level.value, text))


def _describe(tool: type[Tool] | FakeTool) -> ToolInfo:
    if not isinstance(tool, FakeTool):
        info: ToolInfo = dispatch(role_of(tool), tool, "describe", {})
        return info
    functions = [Function(name, "", {"type": "object"}, EffectClass.READ_ONLY) for name in tool.functions]
    return ToolInfo(tool.id, tool.description, functions)


def _answer(call: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return call(argument)
    except Error as error:
        return error


def _through_json(value: Any) -> Any:
    """The error as a caller in another component gets it."""
    return json.loads(jsontext.dumps(value))
