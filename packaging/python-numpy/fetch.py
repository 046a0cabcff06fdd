"""Fetches what the build takes from elsewhere: tools and the source of numpy through pip, and headers of CPython.

Nothing is installed, and no code of a package that comes as source is run.
"""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from pins import NUMPY, PYTHON, TOOLS
from place import once, python, run

PIP = ["-m", "pip", "--disable-pip-version-check"]

# The suite of Debian that has this version of Python.
DEBIAN_SUITE = "sid"
DEBIAN_PACKAGE = f"libpython{PYTHON}-dev"

# Python before 3.11.4 knows no filter; the digest of the archive is checked before.
UNPACKING = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

# pip asks the build of a package for its name, which would compile half of numpy. This one answers at once.
BACKEND = """\
import os
def prepare_metadata_for_build_wheel(directory, settings=None):
    name = "numpy-{version}.dist-info"
    os.mkdir(os.path.join(directory, name))
    with open(os.path.join(directory, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: numpy\\nVersion: {version}\\n")
    return name
"""

NO_HEADERS = f"""\
error: there are no headers of CPython {PYTHON}: {{why}}.
Name a folder that has its `Python.h` with --headers. `uv python install {PYTHON}` brings one (include/python{PYTHON}), and so
does the package `python{PYTHON}-dev` of Debian and Ubuntu."""


def tools(place):
    """Fetches the tools, each into a folder of its own: pip leaves out the programs of a second package in one."""
    for pin in TOOLS:
        folder = place / "tools" / pin.name
        with once(folder) as missing:
            if missing:
                shutil.rmtree(folder, ignore_errors=True)
                wanted = requirements(place, pin)
                install = ["install", "--no-deps", "--only-binary", ":all:", *pin.how, "--target", folder]
                run(f"fetch {pin.name} {pin.version} with pip", python(*PIP, *install, "--require-hashes", "-r", wanted),
                    place / "pip.log", env=os.environ | {"PIP_ROOT_USER_ACTION": "ignore"})  # fmt: skip
    return place / "tools"


def numpy_source(place):
    """Fetches the source of numpy and unpacks it."""
    folder = place / "numpy"
    with once(folder) as missing:
        if missing:
            backend = place / "backend"
            backend.mkdir(exist_ok=True)
            (backend / "mesonpy.py").write_text(BACKEND.format(version=NUMPY.version))
            download = ["download", "--no-deps", "--no-build-isolation", "--no-binary", NUMPY.name, "-d", place]
            run(f"fetch the source of numpy {NUMPY.version} with pip",
                python(*PIP, *download, "--require-hashes", "-r", requirements(place, NUMPY)),
                place / "pip.log", env=os.environ | {"PYTHONPATH": str(backend)})  # fmt: skip
            unpacked = place / f"numpy-{NUMPY.version}"
            for old in (folder, unpacked):
                shutil.rmtree(old, ignore_errors=True)
            shutil.unpack_archive(f"{unpacked}.tar.gz", place, **UNPACKING)
            unpacked.rename(folder)
    return folder


def requirements(place, pin):
    path = place / f"{pin.name}.txt"
    path.write_text(pin.requirement())
    return path


def headers(place, named):
    """The folder with the headers of CPython: the one that was named, that of this machine, or that of Debian's package."""
    if named:
        return checked(named)
    program = shutil.which(f"python{PYTHON}")
    if program:
        ask = "import sysconfig; print(sysconfig.get_path('include'))"
        found = Path(subprocess.run([program, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
        if (found / "Python.h").is_file():
            return checked(found)
    return checked(debian_headers(place))


def checked(folder):
    version = version_of(folder)
    if not version.startswith(f"{PYTHON}."):
        raise SystemExit(NO_HEADERS.format(why=f"`{folder}` has {version or 'none'}"))
    return folder


def version_of(folder):
    """The version that headers are of; empty when there are none."""
    try:
        text = (folder / "patchlevel.h").read_text()
    except OSError:
        return ""
    found = re.search(r'^#define\s+PY_VERSION\s+"([^"]*)"', text, re.MULTILINE)
    return found[1] if found else ""


def debian_headers(place):
    """Headers from Debian's package, unpacked and not installed. apt checks signatures, and its own lists stay as they are."""
    folder = place / "debian"
    with once(folder) as missing:
        if missing:
            mirror = debian_mirror()
            if not mirror:
                raise SystemExit(NO_HEADERS.format(why=f"no python{PYTHON} is on the PATH, and apt has no mirror of Debian"))
            shutil.rmtree(folder, ignore_errors=True)
            for part in ("lists/partial", "cache/archives/partial"):
                (folder / part).mkdir(parents=True)
            (folder / "sources.list").write_text(f"deb {mirror} {DEBIAN_SUITE} main\n")
            (folder / "apt.conf").write_text(
                f'Dir::State::Lists "{folder}/lists";\nDir::Cache "{folder}/cache";\n'
                f'Dir::Etc::SourceList "{folder}/sources.list";\nDir::Etc::SourceParts "/dev/null";\n'
            )
            apt = os.environ | {"APT_CONFIG": str(folder / "apt.conf")}
            run(f"read the lists of Debian's {DEBIAN_SUITE}", ["apt-get", "-q", "update"], place / "apt.log", env=apt)
            run(f"fetch Debian's {DEBIAN_PACKAGE}", ["apt-get", "-q", "download", DEBIAN_PACKAGE], place / "apt.log",
                env=apt, cwd=folder)  # fmt: skip
            package = next(folder.glob("*.deb"))
            run("unpack the headers", ["dpkg", "-x", package, folder / "unpacked"], place / "apt.log")
            for part in ("lists", "cache"):
                shutil.rmtree(folder / part)
    return folder / f"unpacked/usr/include/python{PYTHON}"


def debian_mirror():
    """The place from which apt of this machine fetches Debian's packages; none elsewhere."""
    if not shutil.which("apt-get"):
        return None
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], stdout=subprocess.PIPE, text=True)
    return next((line for line in listed.stdout.split() if line.endswith("/debian/")), None)
