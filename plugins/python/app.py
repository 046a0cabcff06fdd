"""The tool `python`: runs Python source in this very interpreter, inside the sandbox.

`run` answers what the source printed and how it ended; `check` also whether it ended well, which a
module that exits while it is imported does not. `check_apart` runs a check without the work, which
runs `serve` in an instance of its own at the other end of a pipe. Nothing can be reached from here
but directories and hosts that the operator granted: no processes, no threads, no sockets. Isolation
between calls is the host's: it starts a fresh instance for each. What bounds a call is the host's
fuel, memory and deadline; `timeout` here is a courtesy that answers nicely first.
"""

import sys

import longhaul_temporary

# Tests run this file beside the library of their machine, which has all of this.
IN_IMAGE = sys.platform == "wasi"

if IN_IMAGE:
    # Before the modules that copy functions of `os`, and those that look whether there is a `bz2`.
    longhaul_temporary.install()
    import longhaul_bz2

    sys.modules["_bz2"] = longhaul_bz2

# Before `http.cookiejar`, which imports `urllib.request`: that looks for what this puts in place.
import longhaul_http  # noqa: F401 - puts `http.client` and `urllib.request` over the host

# Only modules that are imported when the image is built exist in it as objects, so the common part of
# the standard library is imported here. `longhaul_library` packs the others.
import importlib

for _name in """
abc argparse array ast asyncio atexit base64 binascii bisect builtins bz2 calendar cmath codecs collections
collections.abc colorsys concurrent.futures concurrent.futures.thread configparser contextlib contextvars copy csv
dataclasses datetime decimal difflib doctest email.message encodings.ascii encodings.idna encodings.latin_1
encodings.utf_16 encodings.utf_8_sig enum errno fileinput fnmatch fractions functools gc getopt glob graphlib gzip
hashlib heapq hmac html html.parser http.cookiejar importlib.metadata importlib.resources importlib.util inspect io
ipaddress itertools json keyword linecache locale logging math mimetypes numbers operator os os.path pathlib pickle
platform pprint queue random re reprlib runpy sched secrets shlex shutil sqlite3 stat statistics string stringprep struct
subprocess symtable sys tarfile tempfile textwrap threading time timeit token tokenize tomllib traceback types typing
unicodedata unittest unittest.mock urllib.parse uuid warnings weakref xml.dom.minidom xml.etree.ElementTree zipfile zlib
zoneinfo
""".split():
    try:
        importlib.import_module(_name)
    except ImportError:
        pass

import asyncio.selector_events
import atexit
import builtins
import functools
import gc
import io
import json
import linecache
import logging
import os
import random
import re
import time
import traceback
import types
import weakref

import longhaul_apart
import longhaul_judge
import longhaul_library
import longhaul_outputs
import longhaul_serve
import longhaul_steps
import longhaul_tests
import longhaul_threads
from componentize_py_types import Err
from longhaul_wire import Pipe
from wit_world import exports
from wit_world.exports import tool
from wit_world.imports import tool_types

OUTPUT_BYTES_MAX = 200_000
SOURCE_BYTES_MAX = 1_000_000
ARGUMENTS_NESTING_MAX = 200
WORK = "/work"
PACKAGES = longhaul_steps.PACKAGES
MAIN_NAME = "<python>"

_SOURCE = {"type": "string", "description": "Python source"}
_COMMON = {
    "stdin": {"type": "string"},
    "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "seconds"},
    "files": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "modules by file name, such as helper.py",
    },
    "context": {"type": "object", "description": "what the source sees as CONTEXT"},
}


class Tool(exports.Tool):
    def describe(self, settings):
        return tool_types.ToolInfo(
            id="python",
            description="Runs Python in a sandbox without network and processes.",
            functions=[
                _function("run", "Runs Python source and gives what it printed."),
                _function("check", "Runs Python source and the tests in it; it passes when it ends with exit code 0."),
            ],
        )

    def prepare(self, function, arguments, context):
        return "{}"

    def verify(self, function, arguments, prepared, context):
        # Both functions are read-only: the host never asks.
        return tool.Verification_DidNotHappen()

    def call(self, function, arguments, context):
        try:
            # Not described: only the host asks, its graph of steps and its checks.
            if function == "step":
                return tool_types.ToolResult(output=longhaul_steps.answer(arguments), truncated=False)
            if function == "judge":
                return tool_types.ToolResult(output=longhaul_judge.answer(arguments), truncated=False)
            if function == "serve":
                return tool_types.ToolResult(output=_serve(), truncated=False)
            output, truncated = _call(function, arguments, context)
        except Err:
            raise
        except BaseException as error:
            # Anything else would end the instance without a message.
            raise Err(tool_types.ToolError_Failed(f"{type(error).__name__}: {error}")) from None
        return tool_types.ToolResult(output, truncated)


def _function(name, description):
    parameters = {
        "type": "object",
        "properties": {"source": _SOURCE, **_COMMON},
        "required": ["source"],
        "additionalProperties": False,
    }
    return tool_types.Function(
        name=name,
        description=description,
        parameters=json.dumps(parameters),
        effect=tool_types.EffectClass.READ_ONLY,
    )


def _call(function, arguments, context):
    """Gives the answer, and whether some of what was printed is not in it."""
    if function not in ("run", "check", "check_apart"):
        known = f"`{function}`; the tool `python` has run and check"
        raise Err(tool_types.ToolError_UnknownFunction(known))
    request = _read_arguments(arguments)
    settings = _read_settings(context.settings)
    is_check, is_apart = function != "run", function == "check_apart"
    bytes_max = None if settings["stream"] else settings["output_bytes_max"]
    if request.get("rich") and bytes_max is None and not is_check:
        request["outputs"] = longhaul_outputs.Outputs()
    longhaul_temporary.begin(settings["tmp_bytes_max"])
    try:
        stdout, stderr, code = _execute(request, bytes_max, is_check, is_apart)
    finally:
        # Calls count from 1. This one was for nothing, and the time for what the next one needs is now.
        if context.attempt == 0:
            _make_ready()
    outputs = request.get("outputs")
    if outputs is not None:
        streams = {"stdout": "", "stderr": "", "exit_code": code}
        return json.dumps({**streams, "outputs": outputs.kept, "outputs_dropped": outputs.dropped}), False
    if bytes_max is None and not is_check:
        # `json.dumps` takes longer than many a source.
        return f'{{"stdout": "", "stderr": "", "exit_code": {code}}}', False
    kept = [stream for stream in (stdout, stderr) if isinstance(stream, _Output)]
    output = dict(zip(("stdout", "stderr"), [stream.text() for stream in kept] or ("", "")), exit_code=code)
    if is_check:
        output["passed"] = code == 0
    if is_apart:
        output.update(longhaul_apart.end(code))
    return json.dumps(output), any(stream.truncated for stream in kept)


# Arguments and settings: others wrote them.


_ARGUMENTS = {"source": str, "stdin": str, "timeout": (int, float), "files": dict, "context": dict}

# What most calls have, of exactly these types. `rich` is the host's own, and no tool's: pictures are not for models.
_PLAIN = {"source": str, "stdin": str, "context": dict, "rich": bool}


def _read_arguments(text):
    request = _read_object("the arguments", text)
    for name, value in request.items():
        if type(value) is not _PLAIN.get(name):
            _look_closer(request)
            break
    source = request.get("source")
    if source is None:
        _invalid("`source` is missing; it is the Python source to run")
    length = len(source)
    if "files" in request:
        length += sum(map(len, request["files"].values()))
    if length > SOURCE_BYTES_MAX:
        _invalid(f"source and files are longer than {SOURCE_BYTES_MAX} characters")
    return request


def _look_closer(request):
    for name, value in [*request.items()]:
        if name == "rich" and type(value) is bool:
            continue
        expected = _ARGUMENTS.get(name)
        if expected is None:
            _invalid(f"`{name}` is not an argument; known: {', '.join(_ARGUMENTS)}")
        # Models send null for what they leave out.
        if value is None:
            del request[name]
        elif not isinstance(value, expected) or isinstance(value, bool):
            _invalid(f"`{name}` has the wrong type: {type(value).__name__}")
    if not all(isinstance(source, str) for source in request.get("files", {}).values()):
        _invalid("`files` maps names to texts")
    if not request.get("timeout", 1) > 0:
        _invalid("`timeout` is in seconds and more than 0")


@functools.lru_cache(maxsize=4)
def _read_settings(text):
    """Nobody changes what it gives, so that the same text is read once."""
    settings = {"output_bytes_max": OUTPUT_BYTES_MAX, "stream": False, "tmp_bytes_max": longhaul_temporary.BYTES_MAX}
    for name, value in _read_object("the settings of the tool `python`", text or "{}").items():
        if name not in settings:
            _invalid(f"`{name}` is not a setting of the tool `python`; known: {', '.join(settings)}")
        if name == "stream" and not isinstance(value, bool):
            _invalid("the setting `stream` is true or false")
        if name != "stream" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            _invalid(f"the setting `{name}` is a whole number of 1 or more")
        settings[name] = value
    return settings


def _read_object(what, text):
    if _nests_deeper(text, ARGUMENTS_NESTING_MAX):
        _invalid(f"{what} cannot be read: it is nested deeper than {ARGUMENTS_NESTING_MAX} levels")
    try:
        value, end = _scan(text, 0)
    except (ValueError, StopIteration):
        end = None
    if end != len(text):
        value = _read_all(what, text)
    if not isinstance(value, dict):
        _invalid(f"{what} must be a JSON object")
    return value


def _read_all(what, text):
    """Whatever the scanner alone does not read: spaces around it, and what is wrong."""
    try:
        return json.loads(text)
    except ValueError as error:
        _invalid(f"{what} cannot be read: {error}")


def _invalid(text):
    raise Err(tool_types.ToolError_InvalidArguments(text))


# JSON of the source.

# The parser calls itself for each level, and at about 1,000 the stack of calls ends the instance.
JSON_NESTING_MAX = 500

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def _nests_deeper(text, depth_max):
    """Whether arrays and objects nest deeper. Most texts take a look or two at their bytes."""
    if text.count("[") + text.count("{") <= depth_max:
        return False
    left = text.encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    for _ in range(depth_max):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return _nests_deeper_than_tokens(text, depth_max)


def _nests_deeper_than_tokens(text, depth_max):
    """The same, with the brackets within strings left out."""
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > depth_max:
            return True
    return False


_scan = json.JSONDecoder().scan_once
_raw_decode = json.JSONDecoder.raw_decode


def _decode(decoder, text, idx=0):
    if isinstance(text, str) and _nests_deeper(text, JSON_NESTING_MAX):
        raise RecursionError(f"JSON that is nested deeper than {JSON_NESTING_MAX} levels")
    return _raw_decode(decoder, text, idx)


json.JSONDecoder.raw_decode = _decode


# Running.


def _no_self_pipe(loop):
    """There are no sockets, and no other thread that could have to wake the loop."""
    loop._ssock = loop._csock = None


asyncio.selector_events.BaseSelectorEventLoop._make_self_pipe = _no_self_pipe
asyncio.selector_events.BaseSelectorEventLoop._close_self_pipe = _no_self_pipe


def _exit(code):
    """As `sys.exit`: the real one ends the instance, and with it what was printed."""
    raise SystemExit(code)


os._exit = _exit
os.abort = lambda: _exit(134)


class _Output(io.TextIOBase):
    """Keeps the first bytes of what is written, and drops and notes the rest."""

    def __init__(self, bytes_max, errors):
        self._parts = []
        self._left = bytes_max
        self._errors = errors
        self.truncated = False
        self.buffer = _Bytes(self)

    encoding = "utf-8"
    errors = property(lambda self: self._errors)
    write_through = True

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if len(text) > self._left:
            self.truncated = True
            text, length = text[: self._left + 1], len(text)
        else:
            length = len(text)
        self.write_bytes(text.encode("utf-8", self._errors))
        return length

    def write_bytes(self, data):
        if len(data) > self._left:
            self.truncated = True
            data = data[: self._left]
        self._left -= len(data)
        if data:
            self._parts.append(bytes(data))

    def text(self):
        return b"".join(self._parts).decode("utf-8", "replace")

    def take(self):
        """What was written since it was last asked."""
        text = self.text()
        self._parts.clear()
        return text


class _Bytes(io.RawIOBase):
    """`sys.stdout.buffer`, where it is kept."""

    def __init__(self, output):
        self._output = output

    def writable(self):
        return True

    def write(self, data):
        self._output.write_bytes(data)
        return len(data)


# What each stream does with what is no text, as elsewhere: standard output refuses it.
ERRORS = {1: "strict", 2: "backslashreplace"}

# Taken before any source runs, which may put something else in its place.
_write_part = io.FileIO.write


class _Raw(io.FileIO):
    """`sys.stdout.buffer`, where the host prints."""

    def write(self, data):
        if type(data) is not bytes:
            data = memoryview(data).cast("B")
        length = len(data)
        written = _write_part(self, data)
        # The host takes 64 KiB at a time, and nobody above looks at what is left.
        while written < length:
            written += _write_part(self, memoryview(data)[written:])
        return length


def _open_console(descriptor, name):
    """What is written is with the host at once, which bounds it, so that it is seen however the source ends."""
    raw = _Raw(descriptor, "wb", closefd=False)
    raw.name = name
    stream = io.TextIOWrapper(raw, "utf-8", ERRORS[descriptor], newline="\n", write_through=True)
    stream.mode = "w"
    return stream


def _complain(stderr, text):
    """The source may have closed what it was given."""
    stream = stderr if isinstance(stderr, _Output) else _open_console(2, "<stderr>")
    stream.write(text)


# The exit code of a source that ran out of its own `timeout`.
TIMED_OUT = -1


class _TimedOut(BaseException):
    """Not an Exception, so that `except Exception` does not swallow it."""


class _Modules:
    """Finds the modules that came with the call, before any directory."""

    def __init__(self, files):
        self._sources = {}
        for name, source in files.items():
            parts = name.removesuffix(".py").split("/")
            is_package = len(parts) > 1 and parts[-1] == "__init__"
            module = ".".join(parts[:-1] if is_package else parts)
            if name.endswith(".py") and module.replace(".", "_").isidentifier():
                self._sources[module] = (name, source, is_package)

    def find_spec(self, fullname, path=None, target=None):
        is_parent = any(module.startswith(fullname + ".") for module in self._sources)
        if fullname not in self._sources and not is_parent:
            return None
        _, _, is_package = self._sources.get(fullname, ("", "", True))
        is_package = is_package or is_parent
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name, source, _ = self._sources.get(module.__name__, (module.__name__, "", True))
        module.__file__ = name
        _show_lines(name, source)
        exec(compile(source, name, "exec"), module.__dict__)


@functools.cache
def _start_instance():
    """What an instance does once, since it takes more than a small source: tells which of its directories exist."""
    # The image carries the generator's state of its build: without this all instances would repeat it.
    # Of bytes it would take a digest first.
    random.seed(int.from_bytes(os.urandom(32)))
    return os.path.isdir(WORK), os.path.isdir(PACKAGES)


longhaul_tests.OWN_FILES.update(
    module.__file__ for module in (longhaul_library, longhaul_temporary, longhaul_threads)
)
if IN_IMAGE:
    longhaul_temporary.install_databases()
    longhaul_threads.install()
    longhaul_library.pack()

# As they are before any source has run.
_PATHS, _FINDERS = tuple(sys.path), tuple(sys.meta_path)

# Of the names that a source finds. What comes behind is its own.
_LAST_NAME = "CONTEXT"

# Whether a source would find what the next function makes.
_is_ready = False

# The lines of the source that tracebacks show, in an entry that stays.
_main_lines = []


def _make_ready():
    """Puts what a source finds in its place. The image has that done, and one call for nothing does it anew."""
    global _is_ready
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, _LAST_NAME: {}})
    sys.modules["__main__"] = main
    sys.stdin = _open_input("")
    sys.stdout, sys.stderr = _open_console(1, "<stdout>"), _open_console(2, "<stderr>")
    sys.path[:], sys.meta_path[:] = _PATHS, _FINDERS
    sys.dont_write_bytecode = True
    if IN_IMAGE:
        _forget_ends()
    _main_lines.clear()
    linecache.cache[MAIN_NAME] = (0, None, _main_lines, MAIN_NAME)
    _is_ready = True


def _forget_ends():
    """Of what a source before wanted done at its end nothing is left; the library's own ends are there."""
    longhaul_threads.forget()
    atexit._clear()
    atexit.register(logging.shutdown)
    # It registers itself with the first object that it looks after.
    weakref.finalize._registered_with_atexit = False


def _execute(request, bytes_max, is_check, is_apart=False):
    """Runs the request. What it leaves in the interpreter is put right before another one, if one comes.

    Without `bytes_max` the host keeps what is printed.
    """
    global _is_ready
    if not _is_ready:
        _make_ready()
    _is_ready = False
    namespace = sys.modules["__main__"].__dict__
    _set_up(request, bytes_max, namespace)
    if is_check:
        longhaul_tests.set_up(namespace, WORK)
    streams = stdout, stderr = sys.stdout, sys.stderr
    if is_apart and not longhaul_apart.begin(request["source"], WORK):
        return stdout, stderr, 1
    code = _run_main(request, namespace, stderr, is_check)
    # Before the ends, at which matplotlib closes its figures.
    if "outputs" in request:
        _show_figures(request["outputs"], stderr)
    if code != TIMED_OUT:
        _run_ends(stderr)
    _end(namespace, streams)
    return stdout, stderr, code


def _show_figures(outputs, stderr):
    try:
        outputs.show_figures()
    except Exception as error:
        _show_error(error, stderr)


def _serve():
    """Answers the judge of a check, as the work that it is about."""
    _make_ready()
    namespace = sys.modules["__main__"].__dict__
    _set_up({}, OUTPUT_BYTES_MAX, namespace)
    longhaul_tests.set_up(namespace, WORK)
    longhaul_serve.serve(Pipe(), (sys.stdout, sys.stderr))
    return "{}"


def _set_up(request, bytes_max, namespace):
    """What differs from call to call, and what the first one in an instance finds emptied."""
    sys.argv = [MAIN_NAME]
    # The work may have a module of the same name, and it is called `app` often enough.
    sys.modules.pop(__name__, None)
    has_work, has_packages = _start_instance()
    if has_packages:
        # Behind the library, as elsewhere.
        sys.path.append(PACKAGES)
    if has_work:
        sys.path.insert(0, WORK)
        os.chdir(WORK)
    if bytes_max is not None:
        sys.stdout, sys.stderr = _Output(bytes_max, ERRORS[1]), _Output(bytes_max, ERRORS[2])
    if "files" in request:
        sys.meta_path.insert(0, _Modules(request["files"]))
    stdin, context = request.get("stdin"), request.get("context")
    if stdin:
        sys.stdin = _open_input(stdin)
    if context:
        namespace[_LAST_NAME] = context


def _open_input(text):
    return io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "replace")), "utf-8", newline=None)


def _run_ends(stderr):
    """Threads that are still to run, and what was registered with `atexit`, as at the end of an interpreter."""
    if not IN_IMAGE:
        return
    try:
        longhaul_threads.finish()
        atexit._run_exitfuncs()
    except BaseException as error:
        _show_error(error, stderr)


def _end(namespace, own):
    """As when an interpreter ends: files that were left open are closed, and what is held back is written."""
    # What was made last may need what was made before.
    for _ in range(len(namespace)):
        if next(reversed(namespace), _LAST_NAME) is _LAST_NAME:
            break
        namespace.popitem()
    for name in ("stdout", "stderr"):
        try:
            stream = getattr(sys, name)
            if stream not in own or not stream.write_through:
                stream.flush()
        except BaseException:
            # Whatever the source has made of it.
            pass


def _run_main(request, namespace, stderr, is_check):
    source, timeout = request["source"], request.get("timeout")
    _main_lines[:] = source.splitlines(keepends=True)
    stop = None if timeout is None else _watch(timeout)
    try:
        if is_check:
            exec(longhaul_tests.compiled(source, MAIN_NAME), namespace)
            return longhaul_tests.run(namespace, functools.partial(_complain, stderr))
        if "outputs" in request:
            namespace["display"] = request["outputs"].display
            longhaul_outputs.run(source, MAIN_NAME, namespace, request["outputs"])
        else:
            exec(compile(source, MAIN_NAME, "exec"), namespace)
        return 0
    except SystemExit as end:
        code = _exit_code(end.code, stderr)
        place = _place_in_work(end) if is_check and code == 0 else None
        if place is None:
            return code
        _complain(stderr, f"{place}: the work ended the check before it was through\n")
        return 1
    except _TimedOut:
        stop()
        _complain(stderr, f"Timeout after {timeout:g} seconds\n")
        return TIMED_OUT
    except BaseException as error:
        if stop:
            stop()
        longhaul_apart.note(error)
        _show_error(error, stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        if stop:
            stop()


def _place_in_work(error):
    """Where the work, and not the check or the library, raised `error`; none when it did not.

    Without this a module could pass its check by exiting with 0 when it is imported.
    """
    if longhaul_apart.is_of_work(error):
        return WORK
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        own = (MAIN_NAME, __file__, *longhaul_tests.OWN_FILES)
        if name not in own and not name.startswith(("/python/", "<frozen ")):
            return f"{name}:{line}"
    return None


def _exit_code(code, stderr):
    if code is None:
        return 0
    if isinstance(code, int):
        # A larger number would not fit the host's 32 bits.
        return int(code) & 0xFF
    _complain(stderr, f"{code}\n")
    return 1


def _show_error(error, stderr):
    """As the interpreter would, without the frames of this file."""
    try:
        shown = traceback.TracebackException.from_exception(error, compact=True)
        _drop_own_frames(shown)
        _complain(stderr, "".join(shown.format()))
    except BaseException:
        _complain(stderr, f"{type(error).__name__} (it cannot be shown)\n")


def _drop_own_frames(shown):
    own = (__file__, longhaul_outputs.__file__, *longhaul_tests.OWN_FILES)
    while shown is not None:
        kept = [frame for frame in shown.stack if frame.filename not in own]
        shown.stack[:] = [frame for frame in kept if "importlib" not in frame.filename]
        shown = shown.__cause__ or shown.__context__


def _show_lines(name, source):
    """Lets tracebacks show source that is in no file."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)


# Events between two looks at the clock.
_EVENTS_PER_LOOK = 2_000


def _watch(timeout):
    """Raises `_TimedOut` in the running source once `timeout` seconds are over; gives a way to stop."""
    monitoring, tool = sys.monitoring, sys.monitoring.OPTIMIZER_ID
    events = monitoring.events.JUMP | monitoring.events.PY_START
    end = time.monotonic() + timeout
    left = _EVENTS_PER_LOOK

    def look(*_):
        nonlocal left
        left -= 1
        if left <= 0:
            left = _EVENTS_PER_LOOK
            if time.monotonic() >= end:
                raise _TimedOut

    def stop():
        if monitoring.get_tool(tool) == "longhaul":
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

    monitoring.use_tool_id(tool, "longhaul")
    monitoring.set_events(tool, events)
    monitoring.register_callback(tool, monitoring.events.JUMP, look)
    monitoring.register_callback(tool, monitoring.events.PY_START, look)
    return stop


# The image, when everything above is in it. A call pays for each page that it writes first, which copies
# the page, so what calls would write is written now.


def _rehearse():
    """Calls often enough that the interpreter has specialised what every call runs through."""
    arguments = json.dumps({"source": "print('', end='')", "context": {}, "stdin": ""})
    own = sys.modules[__name__]
    for stream in ("false", "true") * 40:
        settings = f'{{"stream": {stream}, "output_bytes_max": 1000}}'
        context = tool.CallContext("", 0, 0, settings)
        Tool().call("run", arguments, context)
    # It is still being imported.
    sys.modules[__name__] = own


_rehearse()
_start_instance.cache_clear()
longhaul_temporary.forget()
gc.collect()
# A collection that looked at what exists by now would write to all of it.
gc.freeze()
