"""The hand-off from one invocation of an agent to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _host, jsontext
from ._records import record


@record(json=("state",))
@dataclass
class Handoff:
    """The artifact of the invocation before. `run_number` counts invocations."""

    run_number: int
    state: Any
    summary: str


def load() -> Handoff | None:
    """None on the first invocation."""
    handoff: Handoff | None = _host.call("artifact", "load")
    return handoff


def save(state: Any, summary: str) -> None:
    """Leaves `state`, any JSON value, and a summary in words."""
    _host.call("artifact", "save", jsontext.dumps(state), summary)
