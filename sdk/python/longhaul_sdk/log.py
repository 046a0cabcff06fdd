"""The log of the plugin, for people. It is bounded by the host: what is over is dropped and counted.

`print` goes there too, as do lines on standard error.
"""

from __future__ import annotations

import enum

from . import _host
from ._records import record


@record()
class Level(enum.Enum):
    """The level of a line. Warnings and errors become events of the run."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


def write(level: Level, text: str) -> None:
    """Adds a line."""
    _host.call("log", "write", level, text)


def trace(text: str) -> None:
    write(Level.TRACE, text)


def debug(text: str) -> None:
    write(Level.DEBUG, text)


def info(text: str) -> None:
    write(Level.INFO, text)


def warn(text: str) -> None:
    write(Level.WARN, text)


def error(text: str) -> None:
    write(Level.ERROR, text)
