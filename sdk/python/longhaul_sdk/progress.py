"""The progress log of the project, which later sessions and people read. For agents."""

from __future__ import annotations

from collections.abc import Sequence

from . import _host


def add(action: str, outcome: str, files: Sequence[str] = ()) -> None:
    """Adds an entry: the action, its outcome, and the paths of the files that changed.

    The host keeps 4 096 bytes of each text and 100 files. Raises LimitError where the entries of the run reach
    their limit.
    """
    _host.call("progress", "add", action, outcome, list(files))
