"""The sources of the standard library, packed into the image, and the data of time zones.

A module that is imported when the image is built lies in it as objects, and costs nothing to import. The others are
compiled when a program imports them: compiling them for the image would leave the memory in it that the compiler needs,
and each instance would have it. A module that cannot be had is refused with the reason, and with what to use in its
place. Modules of the work and of packages are found before those that lie here, as the directory of a program comes
before the library elsewhere. Nothing here reads a file once the image is built.
"""

import functools
import hashlib
import hmac
import importlib.machinery
import importlib.resources.abc
import importlib.util
import io
import os
import sys
import types
import zipfile
import zlib

import longhaul_bz2
import longhaul_ctypes

_TERMINAL = "there is no terminal here; read `input()` and write `print()`"
_WINDOWS = "it is of Windows"
_USERS = "there are no users here"
_WINDOW = "there is no screen here"
_COMPILED = "the library that it stands on is not in this interpreter"

# Modules that cannot be imported, each with the reason. A test of the host makes the table of the book from them.
REASONS = {
    "compression.lzma": f"{_COMPILED}; use `gzip` or `zlib`",
    "compression.zstd": f"{_COMPILED}; use `gzip` or `zlib`",
    "curses": _TERMINAL,
    "ensurepip": "there is no pip here; packages are granted from outside, with `longhaul exec --with NAME`",
    "fcntl": "files cannot be locked here; nobody else sees them while a source runs",
    "grp": _USERS,
    "idlelib": _WINDOW,
    "lzma": f"{_COMPILED}; use `gzip` or `zlib`",
    "mmap": "files cannot be mapped into memory here; read them with `open`",
    "msvcrt": _WINDOWS,
    "nt": _WINDOWS,
    "pty": _TERMINAL,
    "pwd": _USERS,
    "readline": _TERMINAL,
    "resource": "the host bounds time and memory; `time.process_time` tells what was used",
    "ssl": "the host sets up TLS; use `urllib.request` or `http.client` for https",
    "syslog": "there is no system log here; use `logging`",
    "termios": _TERMINAL,
    "tkinter": _WINDOW,
    "tty": _TERMINAL,
    "turtle": _WINDOW,
    "turtledemo": _WINDOW,
    "venv": "there is no pip here; packages are granted from outside, with `longhaul exec --with NAME`",
    "winreg": _WINDOWS,
    "winsound": _WINDOWS,
}

# Folders of the library that hold no module that a source could use.
_LEFT_OUT = {"__pycache__", "site-packages", "test", "ctypes", *(name for name in REASONS if "." not in name)}

# The source of each module by its name: whether it is a package, the name of its file, and its bytes.
_packed = {}

# Files of packages that are no modules, as a zip archive.
_data = b""


class _Loader:
    """Makes modules of what was packed."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(_code(module.__spec__.name), module.__dict__)

    @staticmethod
    def get_code(name):
        return _code(name)

    @staticmethod
    def get_source(name):
        return importlib.util.decode_source(_source(name))

    @staticmethod
    def is_package(name):
        return _packed[name][0]

    @staticmethod
    def get_resource_reader(name):
        return _Resources(name) if _packed[name][0] else None


class _Resources(importlib.resources.abc.TraversableResources):
    """The files beside a packed module."""

    def __init__(self, package):
        self._folder = package.replace(".", "/") + "/"

    def files(self):
        return zipfile.Path(_archive(), self._folder)


class Finder:
    """Finds packed modules, and refuses those that cannot be had."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _packed:
            reason = REASONS.get(name) or REASONS.get(name.partition(".")[0])
            # Who only asks whether there is such a module gets the usual answer.
            if reason and sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":
                raise ModuleNotFoundError(f"No module named {name!r}: {reason}", name=name)
            return None
        return _spec(name)


def _spec(name):
    is_package, file, _ = _packed[name]
    spec = importlib.machinery.ModuleSpec(name, _Loader, origin=file, is_package=is_package)
    spec.has_location = True
    if is_package:
        spec.submodule_search_locations = [os.path.dirname(file)]
    return spec


def _source(name):
    return zlib.decompress(_packed[name][2])


def _code(name):
    return compile(_source(name), _packed[name][1], "exec", dont_inherit=True)


@functools.cache
def _archive():
    return zipfile.ZipFile(io.BytesIO(_data))


# When the image is built.


def pack():
    """Packs the library and the package `tzdata`."""
    global _data
    # Not that of `os`, which is frozen and tells of a folder that is not there.
    root = os.path.dirname(hmac.__file__)
    for name, file, is_package in _modules(root):
        _pack(name, file, is_package)
        module = sys.modules.get(name)
        if module is not None:
            # So that it can be loaded again, and shown: its file is not there where it runs.
            module.__spec__ = _spec(name)
            module.__loader__ = _Loader
    # Modules of a library in C, as far as they can be had without it.
    _pack("_bz2", longhaul_bz2.__file__, False)
    _pack("ctypes", longhaul_ctypes.__file__, False)
    _data = _zones()
    sys.meta_path.append(Finder)


def _pack(name, file, is_package):
    with open(file, "rb") as opened:
        _packed[name] = (is_package, file, zlib.compress(opened.read(), 9))


def _modules(root, prefix=""):
    """The modules below a folder: name, file, and whether it is a package."""
    for entry in sorted(os.listdir(root)):
        file = os.path.join(root, entry)
        name = prefix + entry.removesuffix(".py")
        if entry in _LEFT_OUT or name in REASONS:
            continue
        if entry.endswith(".py"):
            if entry != "__init__.py":
                yield name, file, False
        elif os.path.isfile(os.path.join(file, "__init__.py")):
            yield name, os.path.join(file, "__init__.py"), True
            yield from _modules(file, name + ".")


def _zones():
    """The files of `tzdata`, by which `zoneinfo` knows the zones where no system has them."""
    # The build finds it where `packages` of plugin.toml has it.
    spec = importlib.machinery.PathFinder.find_spec("tzdata")
    if spec is None:
        return b""
    root = os.path.dirname(spec.origin)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for folder, _, files in sorted(os.walk(root)):
            for file in sorted(files):
                path = os.path.join(folder, file)
                inside = os.path.relpath(path, os.path.dirname(root))
                if not file.endswith((".py", ".pyc")):
                    with open(path, "rb") as opened:
                        archive.writestr(zipfile.ZipInfo(inside), opened.read(), zipfile.ZIP_DEFLATED)
    _pack("tzdata", spec.origin, True)
    for name, file, is_package in _modules(root, "tzdata."):
        _pack(name, file, is_package)
    return written.getvalue()


# What the library leaves to a library in C that is not here.


def _pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """As `hashlib.pbkdf2_hmac`, a block after the other."""
    if not isinstance(hash_name, str):
        raise TypeError(hash_name)
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    keyed = hmac.new(password, digestmod=hash_name)
    dklen = keyed.digest_size if dklen is None else dklen
    if dklen < 1:
        raise ValueError("key length must be greater than 0.")
    key = b""
    block = 0
    while len(key) < dklen:
        block += 1
        step = keyed.copy()
        step.update(bytes(salt) + block.to_bytes(4))
        digest = step.digest()
        mixed = int.from_bytes(digest)
        for _ in range(iterations - 1):
            step = keyed.copy()
            step.update(digest)
            digest = step.digest()
            mixed ^= int.from_bytes(digest)
        key += mixed.to_bytes(keyed.digest_size)
    return key[:dklen]


if not hasattr(hashlib, "pbkdf2_hmac"):
    hashlib.pbkdf2_hmac = types.FunctionType(
        _pbkdf2_hmac.__code__, globals(), "pbkdf2_hmac", _pbkdf2_hmac.__defaults__
    )
