"""Wait. In an agent and a planner the wait is durable: it goes on where it was after a restart."""

from __future__ import annotations

from . import _host


def sleep(duration_ms: int) -> None:
    """Waits for `duration_ms` milliseconds. An evaluator cannot."""
    _host.call("timer", "sleep", duration_ms)
