"""Graphs of steps of Python code. After a change only the steps that it affects run again. For agents.

```python
figures = Graph("figures")
figures.add("load", "rows = [1, 2, 3]")
figures.add("sum", "total = sum(rows)")
figures.run()
figures.change("load", "rows = [1, 2, 4]")
assert figures.run().ran == ["load", "sum"]
```

A graph belongs to the invocation that made it. Its steps see each other's values, and no directories, hosts or tools.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from . import _host
from ._records import record


@record()
class GraphState(enum.Enum):
    """The state of a step."""

    FRESH = "fresh"
    STALE = "stale"
    BLOCKED = "blocked"
    FAILED = "failed"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@record()
class GraphFormat(enum.Enum):
    """The format of an export: JSON, or the language of Graphviz."""

    JSON = "json"
    DOT = "dot"


@record()
@dataclass
class GraphFailure:
    """The reason for which a step failed or is broken."""

    # The type of the exception, `SyntaxError` for a broken step, or the name of the limit.
    kind: str
    message: str
    # The line in the source of the step, from 1. None: not known.
    line: int | None = None
    # The column in that line, in characters from 1. None: not known.
    column: int | None = None
    # The traceback as Python prints it, cut at 16 KiB. May be empty.
    traceback: str = ""


@record()
@dataclass
class GraphStep:
    """A step of a graph."""

    id: str
    source: str
    state: GraphState = GraphState.STALE
    # The names of the variables that the step reads from earlier steps.
    reads: list[str] = field(default_factory=list)
    # The names of the variables that the step may write or change.
    writes: list[str] = field(default_factory=list)
    # The steps that this one depends on directly.
    needs: list[str] = field(default_factory=list)
    # The names of variables whose values cannot be stored. The step runs again whenever they are needed.
    unstorable: list[str] = field(default_factory=list)
    # The standard output and error of the last run, each cut at 64 KiB.
    stdout: str = ""
    stderr: str = ""
    # The `repr` of the last expression, cut at 10 000 bytes. None: there is none, or its value is None.
    value: str | None = None
    failure: GraphFailure | None = None
    # The duration of the last run in milliseconds. 0 before the first run.
    duration_ms: int = 0


@record()
@dataclass
class GraphChanges:
    """The effect of a change: the steps that run next, and the reason for which a new source is not valid Python."""

    stale: list[str] = field(default_factory=list)
    failure: GraphFailure | None = None


@record()
@dataclass
class GraphReplay:
    """The effect of a run: the names of the steps that ran, were reused from an earlier run with the same inputs,
    failed, or were blocked by a failed step; the number of untouched steps; and warnings.
    """

    ran: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    untouched: int = 0
    warnings: list[str] = field(default_factory=list)


@record()
@dataclass
class GraphValue:
    """A value that a failure may depend on, and the step that computed it (None: no step did)."""

    name: str
    text: str
    producer: str | None = None


@record()
@dataclass
class GraphDiagnosis:
    """A diagnosis of a failure: the step that probably causes it, and the reason for naming that step."""

    step: str
    failure: GraphFailure
    values: list[GraphValue]
    cause: str
    reason: str


@record()
@dataclass
class GraphPatch:
    """A change that repaired a failure: the step, its new source, the number of sources that were tried, and the
    effect of the run that followed.
    """

    step: str
    source: str
    reason: str
    tries: int = 0
    replay: GraphReplay = field(default_factory=GraphReplay)


class Graph:
    """A graph of this invocation. It exists from its first step on. Methods raise UnknownStepError for another step."""

    def __init__(self, name: str) -> None:
        self.name = name

    def add(self, step: str, source: str) -> GraphChanges:
        """Adds a step after the last one. A source that is not valid Python is kept, and reported in the result."""
        changes: GraphChanges = _host.call("graph", "add_step", self.name, step, source)
        return changes

    def change(self, step: str, source: str) -> GraphChanges:
        """Replaces the source of a step."""
        changes: GraphChanges = _host.call("graph", "change_step", self.name, step, source)
        return changes

    def remove(self, step: str) -> GraphChanges:
        """Removes a step."""
        changes: GraphChanges = _host.call("graph", "remove_step", self.name, step)
        return changes

    def run(self, keep_going: bool = False) -> GraphReplay:
        """Runs the stale steps. With `keep_going` it also runs those that need a failed step.

        A failing step is a result and not an error.
        """
        replay: GraphReplay = _host.call("graph", "run", self.name, keep_going)
        return replay

    def replay(self, step: str) -> GraphReplay:
        """Runs a step again, and then the steps that its new values affect."""
        replay: GraphReplay = _host.call("graph", "replay", self.name, step)
        return replay

    def stale(self) -> list[str]:
        """Lists the stale steps, in the order in which they will run."""
        steps: list[str] = _host.call("graph", "stale", self.name)
        return steps

    def show(self) -> list[GraphStep]:
        """Lists the steps, in the order in which they were added."""
        steps: list[GraphStep] = _host.call("graph", "show", self.name)
        return steps

    def diagnose(self, step: str | None = None) -> GraphDiagnosis:
        """Diagnoses the failure of a step. None: of the first step that failed. Raises InvalidError when none did."""
        found: GraphDiagnosis = _host.call("graph", "diagnose", self.name, step)
        return found

    def patch(self, step: str | None = None) -> GraphPatch:
        """Repairs the failure of a step by another source. None: of the first step that failed.

        Raises FailedError when no source repairs it.
        """
        kept: GraphPatch = _host.call("graph", "patch", self.name, step)
        return kept

    def export(self, format: GraphFormat = GraphFormat.JSON) -> str:
        """Exports the graph as text."""
        text: str = _host.call("graph", "export_graph", self.name, format)
        return text
