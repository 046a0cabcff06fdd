"""The log of the plugin, for people. The host cuts long lines, and drops lines above the limit of an invocation.

`print` and standard error go there, too.
"""

from __future__ import annotations

import enum

from . import _host
from ._records import record


@record()
class Level(enum.Enum):
    """The severity of a line."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


def write(level: Level, text: str) -> None:
    """Writes a line. The host cuts it at 4 096 bytes, unless the operator sets another limit."""
    _host.call("log", "write", level, text)


def trace(text: str) -> None:
    """Writes a line with every detail."""
    write(Level.TRACE, text)


def debug(text: str) -> None:
    """Writes a line for the author of the plugin."""
    write(Level.DEBUG, text)


def info(text: str) -> None:
    """Writes a line about a normal event."""
    write(Level.INFO, text)


def warn(text: str) -> None:
    """Writes a line about an unexpected event that the plugin can handle."""
    write(Level.WARN, text)


def error(text: str) -> None:
    """Writes a line about a failure of the plugin."""
    write(Level.ERROR, text)
