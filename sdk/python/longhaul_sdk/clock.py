"""The time. In an agent, a planner and an evaluator it is the same in every replay."""

from __future__ import annotations

from . import _host


def now_ms() -> float:
    """Milliseconds since 1970-01-01 UTC."""
    return float(_host.call("clock", "now_ms"))
