"""The artifact of an agent: the state that one invocation passes to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _host, jsontext
from ._records import record


@record(json=("state",))
@dataclass
class SavedArtifact:
    """The artifact that was saved last. `save_number` counts saves, from 1."""

    save_number: int
    state: Any
    summary: str


def load() -> SavedArtifact | None:
    """None on the first invocation."""
    saved: SavedArtifact | None = _host.call("artifact", "load")
    return saved


def save(state: Any, summary: str) -> None:
    """Leaves `state`, any JSON value, and a summary in words."""
    _host.call("artifact", "save", jsontext.dumps(state), summary)
