"""Which files a step reads: those that it opens for reading, and the directories that it lists.

The interpreter tells of them by audit events, which reach a hook whatever function a step calls. What a step only asks
about (whether a file exists, how large it is) has no event and is not noted. The hook notes paths and nothing else, and
a step that hides a file harms its own graph only.
"""

import os
import sys

# Paths that are noted of one step, and bytes of each.
FILES_MAX = 1_000
PATH_BYTES_MAX = 4_096

# Kept before any step runs.
_fspath, _getcwd, _join, _normpath, _getframe = os.fspath, os.getcwd, os.path.join, os.path.normpath, sys._getframe
_isinstance, _any, _len, _hasattr, _Exception = isinstance, any, len, hasattr, Exception
_WRITES = os.O_WRONLY, os.O_RDWR
_LISTS = frozenset(["os.listdir", "os.scandir"])
_IMPORTS = "<frozen importlib._bootstrap_external>"


class _Noted:
    """What the step that runs has opened below some directories; none while no step runs that sees any."""

    read = written = directories = None


def note_files(directories):
    """Begins to note what lies in these directories."""
    if directories:
        _Noted.read, _Noted.written = {}, set()
        _Noted.directories = [_normpath(directory) for directory in directories]


def noted_files():
    """Ends; gives the paths that the step read, without those that it wrote to, and the latter."""
    read, written = _Noted.read or (), _Noted.written or ()
    _Noted.read = _Noted.written = _Noted.directories = None
    return {"files": [path for path in read if path not in written], "written": sorted(written)}


def _note(event, arguments):
    if _Noted.read is None or not (event == "open" or event in _LISTS):
        return
    try:
        path = _path_of(arguments[0] if arguments else None)
        # What the interpreter keeps of a module says nothing that the module does not say.
        if path is None or "/__pycache__/" in path:
            return
        if event == "open" and _writes(arguments):
            if _len(_Noted.written) < FILES_MAX:
                _Noted.written.add(path)
        elif _len(_Noted.read) < FILES_MAX and not (event in _LISTS and _is_import(_getframe(1))):
            _Noted.read[path] = None
    except _Exception:
        # Such as a path that is no text: opening it fails for the step, too.
        return


def _path_of(path):
    """An absolute path; none of a file that is open already, or that is in none of the directories."""
    if path is None:
        path = "."
    if _isinstance(path, int):
        return None
    path = _fspath(path)
    if _isinstance(path, bytes):
        path = path.decode()
    path = _normpath(_join(_getcwd(), path))
    is_within = _any(path == one or path.startswith(one.rstrip("/") + "/") for one in _Noted.directories)
    return path if is_within and _len(path.encode()) <= PATH_BYTES_MAX else None


def _writes(arguments):
    flags = arguments[2] if _len(arguments) > 2 else 0
    return _isinstance(flags, int) and _any(flags & flag == flag for flag in _WRITES if flag)


def _is_import(frame):
    """Whether the import system looks for a module. It lists the work for each import."""
    return frame is not None and frame.f_code.co_filename == _IMPORTS


if _hasattr(sys, "addaudithook"):
    sys.addaudithook(_note)
