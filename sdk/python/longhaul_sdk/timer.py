"""A timer. In an agent and a planner the wait is durable: after a restart of the host only the rest of it is waited."""

from __future__ import annotations

from . import _host


def sleep(duration_ms: int) -> None:
    """Waits for `duration_ms` milliseconds. An evaluator cannot wait."""
    _host.call("timer", "sleep", duration_ms)
