"""The SDK of a Longhaul plugin in Python: a class for each role, and the imports of the contract.

```python
from longhaul_sdk import Agent, Conversation, Outcome, Task, export

@export
class Writer(Agent):
    def run(self, task: Task) -> Outcome:
        text = Conversation("You write letters.").text(task.instruction)
        return Outcome({"text": text}, summary="wrote a letter")
```

A role has only the imports of its world; a call of another one raises FailedError. This package never
limits and never hides an error of the host: that is the policy of the plugin or of the operator. It
works in plain Python too, where `longhaul_sdk.testing` takes the place of the host.
"""

from . import (
    artifact,
    checks,
    clock,
    decisions,
    delegate,
    errors,
    graph,
    jsontext,
    keyvalue,
    log,
    progress,
    recall,
    timer,
    tools,
)
from ._export import export
from ._react import react
from .agent import Agent
from .conversation import (
    Conversation,
    Image,
    Message,
    Options,
    Reply,
    Role,
    StopReason,
    ToolCallRequest,
    ToolCallResult,
)
from .errors import (
    BlockedError,
    ContextFullError,
    DeniedError,
    Error,
    FailedError,
    ImpossibleError,
    InvalidArgumentsError,
    InvalidError,
    LimitError,
    OutcomeUnknownError,
    RefusedError,
    TimedOutError,
    UnavailableError,
    UnclearError,
    UnknownAgentError,
    UnknownCheckError,
    UnknownFunctionError,
    UnknownStepError,
)
from .evaluator import Evaluator, Evidence, Judgement, Mark, Rubric, Subject, Verdict
from .graph import Graph, GraphFormat, GraphState
from .memory import Entry, Hit, Memory, MemoryContext, Page
from .planner import (
    Abort,
    CheckSource,
    CheckSpec,
    Goal,
    NativeCheck,
    Planner,
    PlanStep,
    PlanStepResult,
    Replan,
    Retry,
    Skip,
    SourceCheck,
    Synthesis,
    WorkPlan,
    python_check,
)
from .schema import Field, read_as, schema_of
from .tool import CallContext, DidNotHappen, EffectClass, Happened, Tool, ToolResult, Unknown, Verification, function
from .types import Criterion, Issue, Outcome, Task, Usage

__all__ = [
    "Abort",
    "Agent",
    "BlockedError",
    "CallContext",
    "CheckSource",
    "CheckSpec",
    "ContextFullError",
    "Conversation",
    "Criterion",
    "DeniedError",
    "DidNotHappen",
    "EffectClass",
    "Entry",
    "Error",
    "Evaluator",
    "Evidence",
    "FailedError",
    "Field",
    "Goal",
    "Graph",
    "GraphFormat",
    "GraphState",
    "Happened",
    "Hit",
    "Image",
    "ImpossibleError",
    "InvalidArgumentsError",
    "InvalidError",
    "Issue",
    "Judgement",
    "LimitError",
    "Mark",
    "Memory",
    "MemoryContext",
    "Message",
    "NativeCheck",
    "Options",
    "Outcome",
    "OutcomeUnknownError",
    "Page",
    "PlanStep",
    "PlanStepResult",
    "Planner",
    "RefusedError",
    "Replan",
    "Reply",
    "Retry",
    "Role",
    "Rubric",
    "Skip",
    "SourceCheck",
    "StopReason",
    "Subject",
    "Synthesis",
    "Task",
    "TimedOutError",
    "Tool",
    "ToolCallRequest",
    "ToolCallResult",
    "ToolResult",
    "UnavailableError",
    "UnclearError",
    "Unknown",
    "UnknownAgentError",
    "UnknownCheckError",
    "UnknownFunctionError",
    "UnknownStepError",
    "Usage",
    "Verdict",
    "Verification",
    "WorkPlan",
    "artifact",
    "checks",
    "clock",
    "decisions",
    "delegate",
    "errors",
    "export",
    "function",
    "graph",
    "jsontext",
    "keyvalue",
    "log",
    "progress",
    "python_check",
    "react",
    "read_as",
    "recall",
    "schema_of",
    "timer",
    "tools",
]
