"""The artifact of an agent: the state that one invocation passes to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _host, jsontext
from ._records import record


@record(json=("state",))
@dataclass
class SavedArtifact:
    """The artifact that was saved last."""

    # The number of the save, from 1.
    save_number: int
    # The state, any JSON value.
    state: Any
    # A summary of the state, for people.
    summary: str


def load() -> SavedArtifact | None:
    """Returns the artifact that was saved last. None: nothing was saved yet."""
    saved: SavedArtifact | None = _host.call("artifact", "load")
    return saved


def save(state: Any, summary: str) -> None:
    """Saves an artifact in place of the last one.

    `state` is any JSON value of at most 1 MiB, and `summary` has at most 64 KiB; otherwise it raises LimitError.
    """
    _host.call("artifact", "save", jsontext.dumps(state), summary)
