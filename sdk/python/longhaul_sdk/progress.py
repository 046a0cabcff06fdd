"""Notes of the work that was done, for the next worker on the project. For agents."""

from __future__ import annotations

from collections.abc import Sequence

from . import _host


def add(action: str, outcome: str, files: Sequence[str] = ()) -> None:
    """Notes an action, what came of it, and the files that it touched."""
    _host.call("progress", "add", action, outcome, list(files))
