"""Wait. In an agent and a planner the wait is durable: it goes on where it was after a restart."""

from __future__ import annotations

from . import _host


def sleep(ms: int) -> None:
    """Waits for `ms` milliseconds. An evaluator cannot."""
    _host.call("timer", "sleep", ms)
