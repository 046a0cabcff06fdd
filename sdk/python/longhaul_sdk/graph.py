"""Code in steps: change one, and only what it touches runs again. For agents.

```python
figures = Graph("figures")
figures.add("load", "rows = [1, 2, 3]")
figures.add("sum", "total = sum(rows)")
figures.run()
figures.change("load", "rows = [1, 2, 4]")
assert figures.run().ran == ["load", "sum"]
```

A graph belongs to the invocation that made it. Its steps are Python, and see nothing but each other's values.
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
    """The form in which a graph is written out."""

    JSON = "json"
    DOT = "dot"


@record()
@dataclass
class GraphFailure:
    """The cause of a failed or unreadable step: the exception's type, `SyntaxError`, or a limit's name."""

    kind: str
    message: str
    # In the step's source, from 1.
    line: int | None = None
    column: int | None = None
    traceback: str = ""


@record()
@dataclass
class GraphStep:
    """A step as it stands."""

    id: str
    source: str
    state: GraphState = GraphState.STALE
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    # Values that it made and nobody can keep, so that it runs again whenever they are needed.
    unstorable: list[str] = field(default_factory=list)
    # Of its last run; what is long is cut.
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    failure: GraphFailure | None = None
    duration_ms: int = 0


@record()
@dataclass
class GraphChanges:
    """The result of a change: the steps that run next, and why the new source cannot be read."""

    stale: list[str] = field(default_factory=list)
    failure: GraphFailure | None = None


@record()
@dataclass
class GraphReplay:
    """The result of a run. `reused` steps got the answer of an earlier run for the same input."""

    ran: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    untouched: int = 0
    warnings: list[str] = field(default_factory=list)


@record()
@dataclass
class GraphValue:
    """A value that a failure may have to do with."""

    name: str
    text: str
    producer: str | None = None


@record()
@dataclass
class GraphDiagnosis:
    """The cause of a step's failure, as far as it can be told."""

    step: str
    failure: GraphFailure
    values: list[GraphValue]
    cause: str
    reason: str


@record()
@dataclass
class GraphPatch:
    """A patch that was kept: the step, its source now, how many sources were tried, and what ran because of it."""

    step: str
    source: str
    reason: str
    tries: int = 0
    replay: GraphReplay = field(default_factory=GraphReplay)


class Graph:
    """A graph of this invocation. It is there once a step was added."""

    def __init__(self, name: str) -> None:
        self.name = name

    def add(self, step: str, source: str) -> GraphChanges:
        """Adds a step behind the others. A source that cannot be read is kept, and said in the answer."""
        changes: GraphChanges = _host.call("graph", "add_step", self.name, step, source)
        return changes

    def change(self, step: str, source: str) -> GraphChanges:
        """Gives a step another source. Raises UnknownStepError."""
        changes: GraphChanges = _host.call("graph", "change_step", self.name, step, source)
        return changes

    def remove(self, step: str) -> GraphChanges:
        """Takes a step out. Raises UnknownStepError."""
        changes: GraphChanges = _host.call("graph", "remove_step", self.name, step)
        return changes

    def run(self, keep_going: bool = False) -> GraphReplay:
        """Runs what is stale; with `keep_going` also what needs a step that failed. A failing step is no error."""
        replay: GraphReplay = _host.call("graph", "run", self.name, keep_going)
        return replay

    def replay(self, step: str) -> GraphReplay:
        """Runs a step again, and what its new values touch."""
        replay: GraphReplay = _host.call("graph", "replay", self.name, step)
        return replay

    def stale(self) -> list[str]:
        """The steps that would run, in their order."""
        steps: list[str] = _host.call("graph", "stale", self.name)
        return steps

    def show(self) -> list[GraphStep]:
        """All steps as they stand."""
        steps: list[GraphStep] = _host.call("graph", "show", self.name)
        return steps

    def diagnose(self, step: str | None = None) -> GraphDiagnosis:
        """The cause of a failure of `step`, or of the first that failed. Raises InvalidError when none did."""
        found: GraphDiagnosis = _host.call("graph", "diagnose", self.name, step)
        return found

    def patch(self, step: str | None = None) -> GraphPatch:
        """Finds a source with which a failure is gone, and keeps it. Raises FailedError when there is none."""
        kept: GraphPatch = _host.call("graph", "patch", self.name, step)
        return kept

    def export(self, format: GraphFormat = GraphFormat.JSON) -> str:
        """The graph as a text."""
        text: str = _host.call("graph", "export_graph", self.name, format)
        return text
