"""The interpreter as plugins need it: everything imported that they may import, and nothing that traps.

A component has only the modules that were imported when it was built, so the common part of the
standard library is imported here. Threads, processes and sockets stay absent.
"""

from __future__ import annotations

import asyncio.selector_events
import encodings
import importlib
import os
import pkgutil
import random
import sys
from typing import Any

_MODULES = """
abc argparse array ast asyncio base64 binascii bisect builtins calendar cmath codecs collections
collections.abc colorsys configparser contextlib contextvars copy csv dataclasses datetime decimal
difflib email.message email.utils enum errno fnmatch fractions functools gc glob graphlib hashlib
heapq hmac html html.parser importlib.util inspect io ipaddress itertools json keyword linecache locale logging math
mimetypes numbers operator os os.path pathlib pickle pprint queue random re reprlib sched secrets
shlex shutil statistics string stringprep struct sys tempfile textwrap time timeit token tokenize
tomllib traceback types typing unicodedata urllib.parse uuid warnings weakref
xml.etree.ElementTree zlib zoneinfo
""".split()

# Codecs that are of other systems, or exist to fail.
_CODECS_LEFT_OUT = {"mbcs", "oem", "undefined"}

# A component has 1 MiB of stack for calls. A recursion that goes through C, such as a `__repr__` that
# formats its like, ends it at 500 levels without an exception, and raises RecursionError at 400.
# Outside of a component Python's 1,000 stay.
_RECURSION_MAX = 400


def is_component() -> bool:
    """Whether this is Python in a component, or while one is built."""
    return sys.platform == "wasi"


def start_call() -> None:
    """Called at the start of each export."""
    if is_component():
        # The image carries the generator's state of its build: without this all calls would repeat it.
        random.seed(os.urandom(32))


def end_call() -> None:
    """Called at the end of each export: what was printed is in the log by then."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # The plugin closed or replaced it.
            pass


def advice(error: BaseException) -> str:
    """Advice about a module or a codec that the component lacks; empty for any other error."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return (
                f"`{error.name}` was not imported when the component was built, or is not there in WebAssembly; "
                f"write `import {error.name}` at the top of your module and build again"
            )
        return (
            f"`{error.name}` is not in the component; put the folder that holds it into `paths` under [build] in "
            "plugin.toml (`pip install --target vendor/site NAME` for a package in pure Python), import it at the top "
            "of your module, and build again"
        )
    if isinstance(error, LookupError) and str(error).startswith("unknown encoding: "):
        name = str(error).removeprefix("unknown encoding: ").replace("-", "_").lower()
        return f"if Python has this codec, write `import encodings.{name}` at the top of your module and build again"
    return ""


def _codecs() -> list[str]:
    """Python looks a codec's module up when it is first used, which is too late in a component."""
    found = (module.name for module in pkgutil.iter_modules(encodings.__path__))
    return [f"encodings.{name}" for name in found if name not in _CODECS_LEFT_OUT]


def _import_modules() -> None:
    for name in [*_MODULES, *_codecs()]:
        try:
            importlib.import_module(name)
        except ImportError:
            # Not on this platform.
            pass


def _mend() -> None:
    loop: Any = asyncio.selector_events.BaseSelectorEventLoop
    loop._make_self_pipe = loop._close_self_pipe = _no_self_pipe
    # The real ones end the component, and with it what was printed and the answer.
    system: Any = os
    system._exit = system.abort = _exit
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # Lines reach the log when they are printed, whatever characters they have.
            reconfigure(line_buffering=True, errors="backslashreplace")
    sys.setrecursionlimit(_RECURSION_MAX)


def _no_self_pipe(loop: Any) -> None:
    """There are no sockets, and no other thread that could have to wake the loop."""
    loop._ssock = loop._csock = None


def _exit(code: int = 1) -> None:
    raise SystemExit(code)


if is_component():
    _import_modules()
    _mend()
