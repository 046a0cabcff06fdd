"""The folder of a build in Longhaul's cache, and the commands that are run there.

The name of the folder determines its content, as that of every folder of the cache: it has a digest of what goes into the
build. A build that was interrupted goes on where it was. One process builds at a time, and others wait.
"""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

# A step that is done has a file with this ending beside what it made.
DONE = ".done"


def cache():
    """The cache of Longhaul, as the program itself finds it."""
    for variable, below in (("LONGHAUL_CACHE", ""), ("XDG_CACHE_HOME", "longhaul"), ("HOME", ".cache/longhaul")):
        if os.environ.get(variable):
            return (Path(os.environ[variable]) / below).absolute()
    raise SystemExit("error: there is no place for the cache; name a folder that may grow to 1 GB with LONGHAUL_CACHE")


def name_of(inputs):
    """The name of the folder of a build with these inputs, which are texts and bytes."""
    digest = hashlib.sha256()
    for part in inputs:
        part = part.encode() if isinstance(part, str) else part
        digest.update(len(part).to_bytes(8, "little") + part)
    return f"python-numpy-{digest.hexdigest()[:12]}"


@contextlib.contextmanager
def locked(folder):
    """Holds the lock of the folder, which is the one that the program itself would take."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process, which holds `{lock.name}`", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        yield folder


@contextlib.contextmanager
def once(path):
    """Gives True when what belongs at `path` was not made yet, and notes that it was made unless an error comes."""
    done = path.with_name(path.name + DONE)
    missing = not done.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    yield missing
    done.touch()


def run(step, command, log, **others):
    """Runs a command with its output in the file `log`; its last lines are told when it fails."""
    print(f"{step} ...", flush=True)
    with open(log, "w") as written:
        code = subprocess.call([str(part) for part in command], stdout=written, stderr=subprocess.STDOUT, **others)
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise SystemExit(f"{tail}\nerror: cannot {step}; the whole output is in `{log}`")


def python(*arguments):
    """The command of this Python in isolation from the packages of a virtual environment."""
    return [sys.executable, "-B", *arguments]
