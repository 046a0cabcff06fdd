"""The time. In an agent, a planner and an evaluator it follows the journal, so that a replay reads the same."""

from __future__ import annotations

from . import _host


def now_ms() -> float:
    """Returns the time, in milliseconds since 1970-01-01 UTC, with a fraction."""
    return float(_host.call("clock", "now_ms"))
