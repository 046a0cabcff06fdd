"""Resolves packages with pip, and lays out their wheels; started by the crate, with JSON on standard input.

No code of a package runs: pip takes wheels of an index alone, and its dry run installs none. An address in the place of a
version is refused, since pip would build what is there. A wheel is what its digest in the lock says, or refused. Of a wheel
only modules and their data are laid out, within limits; compiled modules are refused, but for packages that do without
theirs.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile

# The interpreter of the sandbox, for which pip chooses wheels, and what it would say of its machine.
VERSION = "3.14"
ENVIRONMENT = {
    "implementation_name": "cpython", "implementation_version": "3.14.0", "os_name": "posix",
    "platform_machine": "wasm32", "platform_python_implementation": "CPython", "platform_release": "0.0.0",
    "platform_system": "wasi", "platform_version": "0.0.0", "python_full_version": "3.14.0",
    "python_version": VERSION, "sys_platform": "wasi",
}

# Packages whose compiled modules only make them faster: each imports modules in pure Python in their place. PyYAML,
# MarkupSafe and SQLAlchemy were run in the sandbox; the others go by their own sources.
OPTIONAL = {
    "cbor2", "coverage", "frozenlist", "markupsafe", "msgpack", "multidict", "propcache", "pyyaml", "rapidfuzz",
    "simplejson", "sqlalchemy", "tornado", "websockets", "wrapt", "yarl", "zope-interface",
}

# One wheel, as it is packed and unpacked, all of them, and the files and folders in all of them.
WHEEL_BYTES_MAX = 64 << 20
UNPACKED_BYTES_MAX = 256 << 20
FILES_MAX = 20_000
PACKAGES_MAX = 100
SECONDS_MAX = 600
# Of pip, and of this script. An index, a wheel's metadata and the list of its files are read into memory as they are.
MEMORY_BYTES_MAX = 2 << 30

_COMPILED = re.compile(r"\.(so|pyd|dylib|dll|a|o)(\.[0-9.]+)?$", re.IGNORECASE)

# Of a line for a person, which may have words of an index in it.
LINE_CHARACTERS_MAX = 500

# What pip is told before it looks. First what keeps code of others from running here: a package may name an address in the
# place of a version, also of a repository, and pip would run the build that it finds there, whatever it is told about
# wheels. A pip that has these elsewhere resolves nothing. Then the interpreter of the sandbox, and that wheels without
# compiled modules come first: an older or newer pip, which has these elsewhere, goes by the machine's own.
_PIP = """
import sys
from pip._internal.distributions.sdist import SourceDistribution
from pip._internal.exceptions import InstallationError
from pip._internal.vcs import vcs
from pip._vendor.packaging.requirements import Requirement

def refuse(what):
    raise InstallationError(f"{what}; only wheels of an index are taken, so use another package")

read_requirement = Requirement.__init__

def read_named(self, *given):
    read_requirement(self, *given)
    if self.url:
        refuse(f"a package needs `{self.name}` from an address of its own")

Requirement.__init__ = read_named
SourceDistribution.prepare_distribution_metadata = lambda *_, **__: refuse("a package comes as source")
vcs._registry.clear()
try:
    from pip._vendor.packaging import markers
    known = markers.default_environment()
    known.update(ENVIRONMENT)
    markers.default_environment = lambda: dict(known)
except (ImportError, AttributeError):
    pass
try:
    from pip._internal.models import target_python
    supported = target_python.get_supported
    target_python.get_supported = lambda *a, **k: sorted(supported(*a, **k), key=lambda tag: tag.platform != "any")
except (ImportError, AttributeError):
    pass
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Refused(Exception):
    """One line for a person."""


def name_of(text):
    return re.sub(r"[-_.]+", "-", text).lower()


def lock(request):
    """The packages that the requirements need, all of them."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        options = ["install", "--dry-run", "--ignore-installed", "--report", report, "--target", folder]
        _pip([*options, *_choice(), "--", *request["requirements"]], request["requirements"], folder)
        with open(report, encoding="utf-8") as file:
            installs = json.load(file)["install"]
    if len(installs) > PACKAGES_MAX:
        raise Refused(f"they need {len(installs)} packages, and at most {PACKAGES_MAX} are taken; name fewer")
    return {"packages": sorted((_locked(install) for install in installs), key=lambda one: one["name"])}


def _locked(install):
    metadata, info = install["metadata"], install["download_info"]
    name, file = name_of(metadata["name"]), urllib.parse.urlsplit(info["url"]).path.rpartition("/")[2]
    digest = info.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    if not file.endswith("-any.whl") and name not in OPTIONAL:
        raise _compiled(name, metadata["version"])
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise Refused(f"the index tells no sha256 of `{file}`; use an index that does")
    return {"name": name, "version": metadata["version"], "sha256": digest}


def _compiled(name, version):
    return Refused(
        f"`{name}` {version} has compiled modules, which do not run in WebAssembly, and no wheel in pure Python; "
        "use another package, or do this part in a tool outside the sandbox"
    )


def _choice():
    options = ["--only-binary", ":all:", "--python-version", VERSION, "--implementation", "cp"]
    for abi in ("cp314", "abi3", "none"):
        options += ["--abi", abi]
    for platform in ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"):
        options += ["--platform", platform]
    return options


# Variables by which pip would ask for more than it is told to, or run elsewhere than in this process.
_LEFT_OUT = (
    "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_USER", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIREMENT",
    "PIP_EDITABLE", "PIP_NO_BINARY", "PIP_PYTHON",
)


def _pip(arguments, wanted, folder):
    """Runs pip, whose temporary files are in the folder."""
    code = f"ENVIRONMENT = {ENVIRONMENT!r}\n{_PIP}"
    quiet = ["--disable-pip-version-check", "--no-input", "--no-color", "--retries", "2", "--quiet"]
    command = [*_python(), "-c", code, *arguments[:1], *quiet, *arguments[1:]]
    environment = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    environment.update(PIP_ROOT_USER_ACTION="ignore", PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder)
    # A session of its own, so that whatever it starts can be ended with it.
    program = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
        encoding="utf-8", errors="replace", cwd="/", start_new_session=True,
    )
    try:
        said, _ = program.communicate()
    except BaseException:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        raise
    if program.returncode != 0:
        raise Refused(_said(said, wanted))


def _python():
    """An interpreter that has pip: this one, or one that `uv` brings."""
    # It may lie among the user's own packages, where this process does not look.
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    if subprocess.run([sys.executable, "-m", "pip", "--version"], **quiet).returncode == 0:
        return [sys.executable]
    uv = shutil.which("uv")
    if uv is None:
        raise Refused("there is neither pip nor uv; on Debian: apt install python3-pip")
    return [uv, "run", "--no-project", "--quiet", "--with", "pip>=23.1", "python"]


def _said(text, wanted):
    """What pip says, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    missing = re.search(r"No matching distribution found for (.+)", text)
    if re.search("NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Max retries exceeded|SSLError", text):
        return "the index of packages cannot be reached, and they are not in the cache; try again with a network"
    if "File too large" in text:
        return f"one of them is longer than {WHEEL_BYTES_MAX} bytes; use a smaller package"
    if "MemoryError" in text:
        return f"pip needs more than {MEMORY_BYTES_MAX} bytes of memory for what the index tells; use other packages"
    if "DO NOT MATCH THE HASHES" in text:
        return "a package is not what the lock says, by its sha256: it was changed after it was locked. Lock again if you trust it"
    if missing:
        return (
            f"there is no wheel of `{missing[1].strip()}` for Python {VERSION}; the name or the version is wrong, or it "
            "comes as source alone"
        )
    if "ResolutionImpossible" in text or "conflicting dependencies" in text:
        return f"these packages do not go together: {', '.join(wanted)}; name other versions"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    # After the word alone follow the frames of pip, and then the reason.
    errors = [error for error in errors if error != "Exception:"] or lines[-1:]
    return f"pip does not resolve them: {(errors or ['it says nothing'])[0][:300]}"


def fill(request):
    """Lays the wheels of a lock out in a folder that is empty."""
    wheels, packages = request["wheels"], request["packages"]
    os.makedirs(wheels, exist_ok=True)
    _sweep(wheels)
    _fetch(packages, wheels)
    _bound_files(UNPACKED_BYTES_MAX)
    room = {"bytes": UNPACKED_BYTES_MAX, "files": FILES_MAX, "folders": set()}
    for package in packages:
        _unpack(os.path.join(wheels, package["sha256"] + ".whl"), package, request["folder"], room)
    return {}


def _sweep(wheels):
    """Removes what a script that was killed left of its downloads: none takes longer than the time of one."""
    for entry in os.scandir(wheels):
        if entry.is_dir(follow_symlinks=False):
            age = time.time() - entry.stat(follow_symlinks=False).st_mtime
            if age > 2 * SECONDS_MAX:
                shutil.rmtree(entry.path, ignore_errors=True)


def _fetch(packages, wheels):
    missing = [one for one in packages if not os.path.isfile(os.path.join(wheels, one["sha256"] + ".whl"))]
    if not missing:
        return
    with tempfile.TemporaryDirectory(dir=wheels) as folder:
        wanted = os.path.join(folder, "wanted.txt")
        with open(wanted, "w", encoding="utf-8") as file:
            for one in missing:
                file.write(f"{one['name']}=={one['version']} --hash=sha256:{one['sha256']}\n")
        options = ["--no-deps", "--require-hashes", "--dest", folder, *_choice(), "--requirement", wanted]
        _pip(["download", *options], [one["name"] for one in missing], folder)
        for file in os.listdir(folder):
            path = os.path.join(folder, file)
            if file.endswith(".whl"):
                os.replace(path, os.path.join(wheels, _digest(path) + ".whl"))


def _digest(path):
    if os.path.getsize(path) > WHEEL_BYTES_MAX:
        raise Refused(f"`{os.path.basename(path)}` is longer than {WHEEL_BYTES_MAX} bytes; use a smaller package")
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _unpack(wheel, package, folder, room):
    name = package["name"]
    if not os.path.isfile(wheel):
        raise Refused(f"the index has no wheel of `{name}` {package['version']} with the sha256 of the lock; lock again")
    if _digest(wheel) != package["sha256"]:
        os.unlink(wheel)
        raise Refused(f"`{name}` in the cache is not what the lock says, and was removed; run the command again")
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                _unpack_file(archive, entry, name, package["version"], folder, room)
    except (Refused, OSError):
        raise
    except Exception as error:
        # What reads archives tells of a bad one by errors of many kinds.
        raise Refused(f"`{name}` {package['version']} is no wheel: {error or type(error).__name__}") from None


def _unpack_file(archive, entry, name, version, folder, room):
    path = _place(entry, name, version)
    if path is None:
        return
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Others take as much memory as the archive asks for.
        raise Refused(f"`{name}` {version} has {path[:100]!r} packed in a way that a wheel may not have; do not use it")
    _count(path, room)
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    # Two packages may have a file of one name, such as an `__init__.py` of a shared folder.
    with archive.open(entry) as source, open(target, "wb") as file:
        while part := source.read(1 << 16):
            room["bytes"] -= len(part)
            if room["bytes"] < 0:
                raise Refused(f"the packages have more than {UNPACKED_BYTES_MAX} bytes; use fewer or smaller ones")
            file.write(part)


def _count(path, room):
    """Takes room for a file, and for the folders on its way that no file before had."""
    room["files"] -= 1
    above = os.path.dirname(path)
    while above and above not in room["folders"]:
        room["folders"].add(above)
        room["files"] -= 1
        above = os.path.dirname(above)
    if room["files"] < 0:
        raise Refused(f"the packages have more than {FILES_MAX} files and folders; use fewer or smaller ones")


def _place(entry, name, version):
    """Where a file goes below the folder; none when it is left out."""
    path = entry.filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    parts = path.split("/")
    wrong = path.startswith("/") or ".." in parts or "\\" in path or "\0" in path or ":" in parts[0] or len(path) > 1000
    if wrong or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"`{name}` {version} has the file {path[:100]!r}, which a wheel may not have; do not use it")
    if path.endswith("/"):
        return None
    if parts[0].endswith(".data"):
        # Modules that are the same everywhere, under a folder of their own; scripts and headers are of no use here.
        if len(parts) < 3 or parts[1] not in ("purelib", "platlib"):
            return None
        parts = parts[2:]
    if _COMPILED.search(parts[-1]):
        if name not in OPTIONAL:
            raise _compiled(name, version)
        return None
    return os.path.join(*parts)


def _line(text):
    """One line without passwords of addresses, and without marks that a terminal would obey."""
    # Up to the last one: a password may have an @ of its own.
    text = re.sub(r"(?<=//)[^/\s]+@", "", text)
    return "".join(mark if mark.isprintable() else "?" for mark in text)[:LINE_CHARACTERS_MAX]


def _is_late(*_):
    raise Refused(f"it took longer than {SECONDS_MAX} seconds; try again, or use fewer packages")


def _bound():
    """Bounds the time, the memory, and each file that is written, also by pip."""
    signal.signal(signal.SIGALRM, _is_late)
    signal.alarm(SECONDS_MAX)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    most = _least(most, MEMORY_BYTES_MAX)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    _bound_files(WHEEL_BYTES_MAX)


def _bound_files(bytes_max):
    """Bounds each file that is written from now on. What pip fetches is no longer than a wheel may be."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_least(most, bytes_max), most))


def _least(most, wanted):
    return wanted if most == resource.RLIM_INFINITY else min(most, wanted)


def main():
    request = json.load(sys.stdin)
    _bound()
    try:
        answer = {"lock": lock, "fill": fill}[request["do"]](request)
    except Refused as error:
        answer = {"refused": _line(str(error))}
    except OSError as error:
        answer = {"refused": _line(f"the packages cannot be laid out: {error}")}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
