"""The pinned checks of the work that is judged. Who calls can run them, and can neither change nor add one.

For agents and evaluators.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import _host
from ._records import record


@record()
@dataclass
class CheckInfo:
    """A check. `vacuous` when it passed before the work began, so that passing says nothing."""

    name: str
    # Its command, in one line.
    description: str
    vacuous: bool = False


@record()
@dataclass
class CheckReport:
    """The end of a check."""

    name: str
    passed: bool
    # None: a limit ended the check.
    exit_code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    duration_ms: int = 0
    # None: the full sandbox held it.
    sandbox_level: str | None = None


def available() -> list[CheckInfo]:
    """The checks that can be run. The contract's `list`."""
    found: list[CheckInfo] = _host.call("checks", "list")
    return found


def run(name: str) -> CheckReport:
    """Runs a check. Raises UnknownCheckError."""
    report: CheckReport = _host.call("checks", "run", name)
    return report
