"""The pinned checks of the work at hand. A caller can run a check, and can neither change nor add one.

For agents and evaluators.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import _host
from ._records import record


@record()
@dataclass
class CheckInfo:
    """A check. `vacuous` is true when it passed before the work started, so that a pass proves nothing."""

    name: str
    # A description of the command or the source, in one line.
    description: str
    vacuous: bool = False


@record()
@dataclass
class CheckReport:
    """The result of running a check."""

    name: str
    # True: the check exited with 0 and, where it runs tests, showed that they passed.
    passed: bool
    # None: a limit ended the check.
    exit_code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    # True: `stdout` or `stderr` was cut at the limit of the check.
    truncated: bool = False
    # The duration in milliseconds.
    duration_ms: int = 0
    # The level of the sandbox. None: it was `full`.
    sandbox_level: str | None = None


def available() -> list[CheckInfo]:
    """Lists the checks. Empty where there is no work tree. The contract calls it `list`."""
    found: list[CheckInfo] = _host.call("checks", "list")
    return found


def run(name: str) -> CheckReport:
    """Runs a check on a copy of the work tree. Raises UnknownCheckError for another name; a failing check is a report.
    """
    report: CheckReport = _host.call("checks", "run", name)
    return report
