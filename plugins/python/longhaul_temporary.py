"""`/tmp` in memory, where no directory is granted there: files that live as long as the instance.

The functions of `os`, `open` and the import system look here for paths below `/tmp`, and elsewhere as they did. All its
files together hold at most so many bytes as the setting `tmp_bytes_max` says; what would be more is refused as a full disk
is. What is written in C alone does not see it: a database of `sqlite3` there is one in memory, under the name of its path.
There are no links, no permissions and no owners; whatever else a file system has is refused as one without it does.
"""

import _io
import builtins
import errno
import functools
import io
import itertools
import os
import posix
import stat
import time

ROOT = "/tmp"
BYTES_MAX = 64 << 20

# Entries, so that empty files are bounded, too.
ENTRIES_MAX = 10_000

# Above all numbers that the host gives.
_FIRST_DESCRIPTOR = 1 << 24

# What flags of `os.open` say about access. WASI gives reading a bit of its own.
_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


def _reads(flags):
    return flags & _ACCESS in (os.O_RDONLY, os.O_RDWR)


def _writes(flags):
    return flags & _ACCESS in (os.O_WRONLY, os.O_RDWR)


class _Node:
    """A file, or a directory, whose entries are by name."""

    def __init__(self, is_directory):
        self.entries = {} if is_directory else None
        self.data = None if is_directory else bytearray()
        self.number, self.database = next(_numbers), None
        self.created = self.modified = time.time_ns()

    def stat(self):
        mode = stat.S_IFDIR | 0o755 if self.data is None else stat.S_IFREG | 0o644
        size = 0 if self.data is None else len(self.data)
        times = {"st_atime": self.modified, "st_mtime": self.modified, "st_ctime": self.created}
        # Each of them three times, as `shutil` copies them in nanoseconds: a whole number, a fraction, and those.
        exact = {f"{name}_ns": time for name, time in times.items()}
        fractions = {name: time / 10**9 for name, time in times.items()}
        seconds = (time // 10**9 for time in times.values())
        return os.stat_result((mode, self.number, 0xFFFF, 1, 0, 0, size, *seconds), fractions | exact)


_numbers = itertools.count(1)


class _Opened:
    """What a descriptor stands for."""

    def __init__(self, node, flags):
        self.node, self.flags, self.position = node, flags, 0


class _Tree:
    """All of `/tmp` in an instance."""

    def __init__(self):
        self.root = _Node(True)
        self.bytes_max, self.bytes, self.entries = BYTES_MAX, 0, 0
        self.opened = {}
        self.next = _FIRST_DESCRIPTOR

    def find(self, path):
        node = self.root
        for name in _names(path):
            if node.entries is None:
                raise _error(errno.ENOTDIR, path)
            node = node.entries.get(name)
            if node is None:
                raise _error(errno.ENOENT, path)
        return node

    def parent(self, path):
        names = _names(path)
        if not names:
            raise _error(errno.EBUSY, path)
        *above, name = names
        try:
            folder = self.find("/".join([ROOT, *above]))
        except OSError as error:
            raise _error(error.errno, path) from None
        if folder.entries is None:
            raise _error(errno.ENOTDIR, path)
        return folder, name

    def add(self, path, is_directory):
        folder, name = self.parent(path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        if self.entries >= ENTRIES_MAX:
            raise OSError(errno.ENOSPC, f"{ROOT} holds at most {ENTRIES_MAX} files and directories", path)
        self.entries += 1
        node = folder.entries[name] = _Node(is_directory)
        return node

    def drop(self, folder, name):
        node = folder.entries.pop(name)
        self.entries -= 1
        # A reader that has it open still holds its bytes.
        if node.data is not None and not any(opened.node is node for opened in self.opened.values()):
            self.resize(node, 0)
        else:
            node.number = 0

    def resize(self, node, size):
        if size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        more = size - len(node.data)
        if more > self.bytes_max - self.bytes:
            raise OSError(errno.ENOSPC, f"{ROOT} holds at most {self.bytes_max} bytes; grant a directory for more")
        if more > 0:
            node.data.extend(bytes(more))
        else:
            del node.data[size:]
        self.bytes += more
        node.modified = time.time_ns()


_tree = _Tree()


def _names(path):
    """The names below `/tmp` on the way to a path."""
    return [name for name in path.split("/")[2:] if name]


def _error(code, path):
    return OSError(code, os.strerror(code), path)


def _inside(path):
    """The normal form of a path below `/tmp`; none for any other."""
    kind = type(path)
    if kind is not str:
        if kind is int:
            return None
        if hasattr(path, "__fspath__"):
            path = path.__fspath__()
        if isinstance(path, (bytes, bytearray)):
            path = os.fsdecode(bytes(path))
        if not isinstance(path, str):
            return None
    if path[:1] != "/":
        if _current is None:
            return None
        path = f"{_current}/{path}"
    elif path[:4] != ROOT and "." not in path:
        return None
    path = os.path.normpath(path)
    return path if (path == ROOT or path.startswith(ROOT + "/")) and _is_memory() else None


# The current directory, where it is below `/tmp`.
_current = None


def _open(path, flags, mode=0o777, *, dir_fd=None):
    inside = _inside(path)
    if inside is None:
        return _real["open"](path, flags, mode, dir_fd=dir_fd)
    try:
        node = _tree.find(inside)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        node = _tree.add(inside, False)
    else:
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, inside)
        if node.data is None and _writes(flags):
            raise _error(errno.EISDIR, inside)
        if node.data is not None and flags & getattr(os, "O_DIRECTORY", 0):
            raise _error(errno.ENOTDIR, inside)
    if flags & os.O_TRUNC and _writes(flags):
        _tree.resize(node, 0)
    _tree.next += 1
    _tree.opened[_tree.next] = _Opened(node, flags)
    return _tree.next


def _opened(descriptor):
    opened = _tree.opened.get(descriptor)
    if opened is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return opened


def _close(descriptor):
    opened = _opened(descriptor)
    del _tree.opened[descriptor]
    node = opened.node
    is_held = any(other.node is node for other in _tree.opened.values())
    if node.data is not None and node.number == 0 and not is_held:
        _tree.resize(node, 0)


def _read(descriptor, length):
    opened = _opened(descriptor)
    if opened.node.data is None:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not _reads(opened.flags):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    data = bytes(memoryview(opened.node.data)[opened.position : opened.position + length])
    opened.position += len(data)
    return data


def _write(descriptor, data):
    opened = _opened(descriptor)
    if not _writes(opened.flags) or opened.node.data is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    data = memoryview(data).cast("B")
    held = opened.node.data
    begin = len(held) if opened.flags & os.O_APPEND else opened.position
    end = begin + len(data)
    if end > len(held):
        _tree.resize(opened.node, end)
    held[begin:end] = data
    opened.position = end
    opened.node.modified = time.time_ns()
    return len(data)


def _seek(descriptor, position, whence=0):
    opened = _opened(descriptor)
    size = len(opened.node.data or b"")
    begins = {0: 0, 1: opened.position, 2: size}
    position += begins.get(whence, 0)
    if position < 0 or whence not in begins:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    opened.position = position
    return position


class _Raw(io.RawIOBase):
    """A file object without a buffer, as `io.FileIO`."""

    def __init__(self, descriptor, name, mode, closefd=True):
        self._descriptor, self._closefd = descriptor, closefd
        self.name, self.mode = name, mode
        self._reads, self._writes = "r" in mode or "+" in mode, mode.strip("rbt") != ""
        if "a" in mode:
            _seek(descriptor, 0, 2)

    closefd = property(lambda self: self._closefd)

    def _check(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def fileno(self):
        self._check()
        return self._descriptor

    def readable(self):
        self._check()
        return self._reads

    def writable(self):
        self._check()
        return self._writes

    def seekable(self):
        self._check()
        return True

    def readinto(self, buffer):
        self._check()
        if not self._reads:
            raise io.UnsupportedOperation("File not open for reading")
        with memoryview(buffer) as view, view.cast("B") as room:
            data = _read(self._descriptor, len(room))
            room[: len(data)] = data
        return len(data)

    def write(self, data):
        self._check()
        if not self._writes:
            raise io.UnsupportedOperation("File not open for writing")
        return _write(self._descriptor, data)

    def seek(self, position, whence=0):
        self._check()
        return _seek(self._descriptor, position, whence)

    def tell(self):
        self._check()
        return _opened(self._descriptor).position

    def truncate(self, size=None):
        self._check()
        if not self._writes:
            raise io.UnsupportedOperation("File not open for writing")
        size = self.tell() if size is None else size
        _tree.resize(_opened(self._descriptor).node, size)
        return size

    def close(self):
        if not self.closed:
            try:
                super().close()
            finally:
                if self._closefd and self._descriptor in _tree.opened:
                    _close(self._descriptor)

    def __repr__(self):
        return f"<_io.FileIO name={self.name!r} mode={self.mode!r} closefd={self._closefd}>"


_FLAGS = {"r": os.O_RDONLY, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND, "x": os.O_CREAT | os.O_EXCL}


def _open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    """As `open`."""
    # A path of another kind, and a mode that is none, are for the real one to refuse.
    kind = "".join(letter for letter in mode if letter in "rwax") if isinstance(mode, str) else ""
    is_ours = isinstance(file, int) and file in _tree.opened
    if not is_ours and (isinstance(file, int) or _inside(file) is None) or kind not in _FLAGS:
        if opener is None or isinstance(file, int):
            return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    is_binary = "b" in mode
    if is_binary and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    access = os.O_RDWR if "+" in mode else os.O_RDONLY if kind == "r" else os.O_WRONLY
    flags = _FLAGS[kind] | access
    if isinstance(file, int):
        descriptor = file
    elif opener is None:
        descriptor = _open(file, flags)
        if _opened(descriptor).node.data is None:
            _close(descriptor)
            raise _error(errno.EISDIR, file)
    else:
        descriptor = opener(file, flags)
        if descriptor not in _tree.opened:
            return _real_open(descriptor, mode, buffering, encoding, errors, newline, closefd)
    raw = _Raw(descriptor, file, {"r": "rb", "w": "wb", "a": "ab", "x": "xb"}[kind] + "+" * ("+" in mode), closefd)
    return _buffered(raw, mode, buffering, encoding, errors, newline)


def _buffered(raw, mode, buffering, encoding, errors, newline):
    is_binary, is_line = "b" in mode, buffering == 1
    if buffering == 0:
        if not is_binary:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    size = io.DEFAULT_BUFFER_SIZE if buffering < 0 or is_line else buffering
    kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
    buffer = kind(raw, size)
    if is_binary:
        return buffer
    text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=is_line)
    text.mode = mode
    return text


def _stat(path, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return _opened(path).node.stat() if path in _tree.opened else _real["stat"](path)
    inside = _inside(path)
    if inside is None:
        return _real["stat"](path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    return _tree.find(inside).stat()


def _listdir(path="."):
    inside = _inside(path)
    if inside is None:
        return _real["listdir"](path)
    node = _tree.find(inside)
    if node.entries is None:
        raise _error(errno.ENOTDIR, path)
    names = list(node.entries)
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


class _Entry:
    """As `os.DirEntry`."""

    def __init__(self, folder, name, node):
        self.name, self.path, self._node = name, os.path.join(folder, name), node

    def is_dir(self, *, follow_symlinks=True):
        return self._node.data is None

    def is_file(self, *, follow_symlinks=True):
        return self._node.data is not None

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def inode(self):
        return self._node.number

    def stat(self, *, follow_symlinks=True):
        return self._node.stat()

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"


class _Scan:
    """As `os.scandir` gives."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def close(self):
        self._entries = iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _scandir(path="."):
    inside = None if path is None else _inside(path)
    if inside is None:
        return _real["scandir"](path)
    node = _tree.find(inside)
    if node.entries is None:
        raise _error(errno.ENOTDIR, path)
    folder = os.fsdecode(path)
    return _Scan([_Entry(folder, name, entry) for name, entry in node.entries.items()])


def _mkdir(path, mode=0o777, *, dir_fd=None):
    inside = _inside(path)
    if inside is None:
        return _real["mkdir"](path, mode, dir_fd=dir_fd)
    if inside == ROOT:
        raise _error(errno.EEXIST, path)
    _tree.add(inside, True)


def _rmdir(path, *, dir_fd=None):
    inside = _inside(path)
    if inside is None:
        return _real["rmdir"](path, dir_fd=dir_fd)
    folder, name = _tree.parent(inside)
    entries = _tree.find(inside).entries
    if entries is None or entries:
        raise _error(errno.ENOTDIR if entries is None else errno.ENOTEMPTY, path)
    _tree.drop(folder, name)


def _unlink(path, *, dir_fd=None):
    inside = _inside(path)
    if inside is None:
        return _real["unlink"](path, dir_fd=dir_fd)
    folder, name = _tree.parent(inside)
    if _tree.find(inside).data is None:
        raise _error(errno.EISDIR, path)
    _tree.drop(folder, name)


def _rename(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
    one, two = _inside(src), _inside(dst)
    if one is None and two is None:
        return _real["rename"](src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    if one is None or two is None:
        # `shutil.move` copies then.
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), src, None, dst)
    node, (here, old), (there, new) = _tree.find(one), _tree.parent(one), _tree.parent(two)
    if node.data is None and (two + "/").startswith(one + "/") and one != two:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), src, None, dst)
    taken = there.entries.get(new)
    if taken is node:
        return
    if taken is not None:
        if (taken.data is None) != (node.data is None):
            code = errno.EISDIR if taken.data is None else errno.ENOTDIR
            raise OSError(code, os.strerror(code), src, None, dst)
        if taken.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), src, None, dst)
        _tree.drop(there, new)
    there.entries[new] = here.entries.pop(old)


def _access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    inside = _inside(path)
    if inside is None:
        return _real["access"](path, mode, dir_fd=dir_fd)
    try:
        node = _tree.find(inside)
    except OSError:
        return False
    return not (mode & os.X_OK and node.data is not None)


def _utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    node = _opened(path).node if isinstance(path, int) and path in _tree.opened else None
    inside = _inside(path) if node is None else None
    if node is None and inside is None:
        given = {"ns": ns} if ns is not None else {"times": times}
        return _real["utime"](path, **given, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    node = _tree.find(inside) if node is None else node
    node.modified = ns[1] if ns else int(times[1] * 10**9) if times else time.time_ns()


def _chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    inside = _inside(path)
    if inside is not None:
        _tree.find(inside)
    elif not (isinstance(path, int) and path in _tree.opened):
        if "chmod" not in _real:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), path)
        _real["chmod"](path, mode)


def _truncate(path, length):
    if isinstance(path, int) and path in _tree.opened:
        return _tree.resize(_opened(path).node, length)
    inside = _inside(path)
    if inside is None:
        return _real["truncate"](path, length)
    node = _tree.find(inside)
    if node.data is None:
        raise _error(errno.EISDIR, path)
    _tree.resize(node, length)


def _readlink(path, *, dir_fd=None):
    inside = _inside(path)
    if inside is None:
        return _real["readlink"](path, dir_fd=dir_fd)
    _tree.find(inside)
    raise _error(errno.EINVAL, path)


def _chdir(path):
    global _current
    inside = _inside(path)
    if inside is None:
        # Where it was before: not even `/` is there without a directory.
        if os.path.normpath(os.fspath(path)) != _real["getcwd"]():
            _real["chdir"](path)
        _current = None
        return
    if _tree.find(inside).data is not None:
        raise _error(errno.ENOTDIR, path)
    _current = inside


def _getcwd():
    return _real["getcwd"]() if _current is None else _current


def _of_descriptor(name, own):
    """A function of `os` that takes a descriptor first."""
    real = _real.get(name)

    @functools.wraps(real or own)
    def function(descriptor, *rest):
        if descriptor in _tree.opened or real is None:
            return own(descriptor, *rest)
        return real(descriptor, *rest)

    return function


def _fstat(descriptor):
    return _opened(descriptor).node.stat()


def _nothing(descriptor):
    _opened(descriptor)


def _is_terminal(descriptor):
    _opened(descriptor)
    return False


def _open_code(path):
    return _real_open_code(path) if _inside(path) is None else _open_file(path, "rb")


_PATHS = {
    "open": _open, "stat": _stat, "listdir": _listdir, "scandir": _scandir, "mkdir": _mkdir, "rmdir": _rmdir,
    "unlink": _unlink, "remove": _unlink, "rename": _rename, "replace": _rename, "access": _access, "utime": _utime,
    "chmod": _chmod, "truncate": _truncate, "readlink": _readlink, "chdir": _chdir, "getcwd": _getcwd,
}
_DESCRIPTORS = {
    "close": _close, "read": _read, "write": _write, "lseek": _seek, "fstat": _fstat, "fsync": _nothing,
    "fdatasync": _nothing, "isatty": _is_terminal,
    "ftruncate": lambda descriptor, length: _tree.resize(_opened(descriptor).node, length),
}
_real = {}
_real_open, _real_open_code = io.open, io.open_code


def _lstat(path, *, dir_fd=None):
    return _stat(path, dir_fd=dir_fd, follow_symlinks=False)


def install():
    """Puts it in the way of the functions that take paths. Modules that copied those before do not see it."""
    for name in (*_PATHS, *_DESCRIPTORS):
        if hasattr(posix, name):
            _real[name] = getattr(posix, name)
    for name, function in _PATHS.items():
        _put(name, function)
    _put("lstat", _lstat)
    for name, function in _DESCRIPTORS.items():
        _put(name, _of_descriptor(name, function))
    builtins.open = io.open = _io.open = _open_file
    io.open_code = _io.open_code = _open_code
    os.supports_dir_fd.clear()
    os.supports_fd.intersection_update({os.stat, os.truncate})


def _put(name, function):
    function.__name__ = name
    setattr(posix, name, function)
    setattr(os, name, function)


def begin(bytes_max):
    """Before a source: an empty `/tmp` of that size."""
    global _tree, _current
    _tree, _current = _Tree(), None
    _tree.bytes_max = bytes_max


@functools.cache
def _is_memory():
    """Whether `/tmp` is this one: not where the host has granted a directory of that name."""
    try:
        _real["stat"](ROOT)
    except OSError:
        return True
    return False


def forget():
    """At the end of the image, whose instances may have other directories."""
    begin(BYTES_MAX)
    _is_memory.cache_clear()


# Databases.


def _connect(database, *arguments, **options):
    """As `sqlite3.connect`."""
    inside = None if isinstance(database, int) else _inside(database)
    if inside is None:
        return _real_connect(database, *arguments, **options)
    try:
        node = _tree.find(inside)
    except FileNotFoundError:
        node = _tree.add(inside, False)
    if node.data is None:
        raise sqlite3.OperationalError("unable to open database file")
    # Alive as long as its file, by which it is found again.
    options["uri"] = True
    name = f"file:/longhaul-{node.number}?vfs=memdb"
    if node.database is None:
        node.database = _real_connect(name, uri=True, check_same_thread=False)
    return _real_connect(name, *arguments, **options)


def install_databases():
    """Once `sqlite3` is there."""
    global _real_connect, sqlite3
    import sqlite3

    _real_connect = sqlite3.connect
    sqlite3.connect = sqlite3.dbapi2.connect = functools.wraps(_real_connect)(_connect)
