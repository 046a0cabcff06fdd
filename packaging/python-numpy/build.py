"""Builds the sandboxed Python with numpy in it: python3 build.py [--to DIRECTORY] [--longhaul PROGRAM] [--headers DIRECTORY]

Writes `python.wasm`, which `longhaul` uses in place of its own Python where LONGHAUL_PLUGINS names its directory, or where
`longhaul plugin install` has installed it. Its tools come from PyPI, through pip, and their digests are checked: zig as the
compiler, since it needs no other SDK, and what numpy is built with. The libraries that extension modules are linked to are
those of the very interpreter, and so is its configuration. What was built lies in Longhaul's cache, and a build that was
interrupted goes on there.

It builds neither BLAS nor threads nor SIMD. It runs on Linux on x86-64, and there it runs code of numpy's build. It needs
Python 3.11 with pip, a C compiler, which builds little programs of numpy's build for this machine, and the headers of
CPython 3.14: `fetch.py` says where it looks for them.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

import fetch
import interpreter
import place as places
from pins import NUMPY, PYTHON, TOOLS
from place import once, run

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
TO = TREE / "target/python-numpy"

# The parts of LLVM's C++ library that numpy uses. Each is linked only where something needs it.
CXX = [
    f"libcxx/src/{name}.cpp"
    for name in ("functional", "hash", "memory", "new_helpers", "stdexcept", "string", "verbose_abort")
]
CXXABI = [
    f"libcxxabi/src/{name}.cpp"
    for name in ("abort_message", "cxa_virtual", "private_typeinfo", "stdlib_exception", "stdlib_new_delete",
                 "stdlib_stdexcept", "stdlib_typeinfo")
]  # fmt: skip

# Hidden in each module: of two modules that export a name the linker takes the first for both.
CXX_FLAGS = ["-O2", "-std=c++23", "-fvisibility=hidden", "-fno-exceptions", "-D_LIBCPP_BUILDING_LIBRARY",
             "-D_LIBCXXABI_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI", "-D_LIBCXXABI_HAS_NO_THREADS"]  # fmt: skip
TARGET = ["-target", "wasm32-wasi", "-fPIC", "-fno-sanitize=all"]

NUMPY_OPTIONS = ["-Dbuildtype=release", "-Doptimization=2", "-Db_ndebug=true", "-Dallow-noblas=true", "-Dblas=none",
                 "-Dlapack=none", "-Ddisable-threading=true", "-Ddisable-optimization=true", "-Ddisable-highway=true",
                 "-Ddisable-svml=true", "-Ddisable-intel-sort=true", "-Dcpu-baseline=none",
                 "-Dcpu-dispatch=none"]  # fmt: skip

# Parts of numpy that nothing in the sandbox can use: they need a compiler, a test runner or Windows. `f2py` itself stays,
# since `from numpy import *` imports it.
LEFT_OUT = ["f2py/src", "_pyinstaller", "_core/include", "_core/lib", "random/lib", "conftest.py", "_configtool.py"]

CROSS = """\
[binaries]
c = '{bin}/cc'
cpp = '{bin}/c++'
ar = '{bin}/ar'
strip = '/bin/true'
python = '{bin}/python'
pkg-config = '/bin/false'

[properties]
needs_exe_wrapper = true
skip_sanity_check = true
longdouble_format = 'IEEE_QUAD_LE'

[host_machine]
system = 'wasi'
cpu_family = 'wasm32'
cpu = 'wasm32'
endian = 'little'
"""

# Cython makes C, so meson looks for it among the programs of this machine.
NATIVE = "[binaries]\ncython = '{bin}/cython'\n"

# Answers meson's question about the interpreter with that of the sandbox, and runs all else.
ASKED = """\
#!{python}
import os, sys
if any(argument.endswith("python_info.py") for argument in sys.argv[1:]):
    print(open({answer!r}).read())
else:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""

# Lines of the interpreter's `app.py`, and what is added behind them.
ADDED = {
    "import asyncio.selector_events\n": "import longhaul_extras\n",
    "    random.seed(int.from_bytes(os.urandom(32)))\n": "    longhaul_extras.start_instance()\n",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].partition(":")[0])
    parser.add_argument("--to", type=Path, default=TO, help="where python.wasm is written; default: target/python-numpy")
    parser.add_argument("--longhaul", default="longhaul", help="the program that builds the plugin; default: that of PATH")
    parser.add_argument("--headers", type=Path, help=f"a folder with the headers of CPython {PYTHON}")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="how many files are compiled at once")
    given = parser.parse_args()
    program = shutil.which(given.longhaul)
    if not program:
        raise SystemExit(f"error: there is no program `{given.longhaul}`; name that of Longhaul with --longhaul")
    with places.locked(places.cache() / places.name_of(inputs())) as place:
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "1"}
        with once(place / "packages") as missing:
            if missing:
                build(place, given.headers, given.jobs)
        component(place, program, given.to.absolute())


def inputs():
    """What determines numpy's compiled code."""
    pins = [pin.requirement() for pin in [*TOOLS, NUMPY]]
    options = [*CXX, *CXXABI, *CXX_FLAGS, *TARGET, *NUMPY_OPTIONS, *LEFT_OUT]
    files = ["exceptions.cpp", "status.c", "status.h", "toolchain.py"]
    return [*pins, *options, *((HERE / name).read_bytes() for name in files)]


def build(place, named_headers, jobs):
    """numpy for the sandbox, in the folder `packages`."""
    tools = fetch.tools(place)
    source = fetch.numpy_source(place)
    known, variables = interpreter.probe(place, tools)
    headers = interpreter.include(place, fetch.headers(place, named_headers), variables)
    toolchain(place, tools, known)
    questions(place, tools, interpreter.answer(headers, variables))
    compile_numpy(place, source, tools, jobs)
    lay_out(place)


def toolchain(place, tools, known):
    """The compilers that meson calls, and the runtime that they link."""
    zig, library, made = tools / "ziglang/ziglang/zig", tools / "ziglang/ziglang/lib", place / "runtime"
    made.mkdir(exist_ok=True)
    os.environ |= {f"ZIG_{kind}_CACHE_DIR": str(place / "compiled") for kind in ("GLOBAL", "LOCAL")}
    found = ["-I", library / "libcxx/src", "-I", library / "libcxxabi/include"]
    runtime = [made / "rt.o"]
    for source in [*(library / source for source in [*CXX, *CXXABI]), HERE / "exceptions.cpp"]:
        runtime.append(made / (source.stem + ".o"))
        compile_once(runtime[-1], [zig, "c++", *TARGET, *CXX_FLAGS, *found, "-c", source, "-o", runtime[-1]])
    status = made / "status.o"
    compile_once(status, [zig, "cc", *TARGET, "-O2", "-c", HERE / "status.c", "-o", status])
    # What the compiler calls, such as the arithmetic of `long double`: the interpreter's library does not export it.
    compile_once(made / "rt.o", [zig, "build-obj", library / "compiler_rt.zig", "-target", "wasm32-wasi", "-fPIC",
                                 "-OReleaseSmall", "-fstrip", "--name", "rt"])  # fmt: skip
    settings = {"zig": str(zig), "exports": known, "runtime": [str(path) for path in runtime], "status": str(status)}
    os.environ["LONGHAUL_TOOLCHAIN"] = str(place / "toolchain.json")
    (place / "toolchain.json").write_text(json.dumps(settings))
    for name in ("cc", "c++", "ar"):
        script(place / "bin" / name, f"#!/bin/sh\nexec {sys.executable} -SE {HERE / 'toolchain.py'} {name} \"$@\"\n")


def compile_once(made, command):
    with once(made) as missing:
        if missing:
            run(f"compile {made.stem}", command, made.with_suffix(".log"), cwd=made.parent)


def questions(place, tools, answer):
    """The programs and files by which meson knows the target."""
    binaries = place / "bin"
    script(binaries / "cython", f"#!/bin/sh\nPYTHONPATH={tools / 'cython'} exec {sys.executable} -m cython \"$@\"\n")
    write(place / "python.json", json.dumps(answer))
    script(binaries / "python", ASKED.format(python=sys.executable, answer=str(place / "python.json")))
    write(place / "cross.ini", CROSS.format(bin=binaries))
    write(place / "native.ini", NATIVE.format(bin=binaries))


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    write(path, text)
    path.chmod(0o755)


def write(path, text):
    """Writes a file that has another text: a build that goes on would configure numpy again for a younger one."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def compile_numpy(place, source, tools, jobs):
    build, ninja = place / "build", tools / "ninja/bin/ninja"
    meson = places.python(source / "vendored-meson/meson/meson.py")
    with_ninja = os.environ | {"NINJA": str(ninja)}
    with once(build) as missing:
        if missing:
            shutil.rmtree(build, ignore_errors=True)
            files = ["--cross-file", place / "cross.ini", "--native-file", place / "native.ini"]
            run("configure numpy", [*meson, "setup", *files, "--prefix", "/usr", *NUMPY_OPTIONS, build, source],
                place / "configure.log", env=with_ninja)  # fmt: skip
    run("compile numpy, which takes a quarter of an hour of one processor", [ninja, "-C", build, f"-j{jobs}"],
        place / "build.log", env=with_ninja)  # fmt: skip
    shutil.rmtree(place / "installed", ignore_errors=True)
    run("lay numpy out", [*meson, "install", "-C", build, "--no-rebuild", "--tags", "runtime,python-runtime", "--destdir",
                          place / "installed"], place / "install.log", env=with_ninja)  # fmt: skip


def lay_out(place):
    """Keeps what a component needs, and removes what only the build did."""
    packages = place / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    shutil.copytree(place / f"installed/usr/lib/python{PYTHON}/site-packages", packages,
                    ignore=shutil.ignore_patterns("tests", "*.pyi", "*.a", "py.typed"))  # fmt: skip
    for part in LEFT_OUT:
        path = packages / "numpy" / part
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if os.environ.get("LONGHAUL_KEEP_BUILD"):
        return
    for part in ("build", "compiled", "installed", "numpy", "tools"):
        shutil.rmtree(place / part, ignore_errors=True)
        for done in place.glob(f"{part}*{places.DONE}"):
            done.unlink()


def component(place, program, to):
    """The plugin `python` of this tree with numpy in its image."""
    plugin = place / "plugin"
    shutil.rmtree(plugin, ignore_errors=True)
    shutil.copytree(TREE / "plugins/python", plugin, ignore=shutil.ignore_patterns("tests", "target", "__pycache__"))
    shutil.copy(HERE / "longhaul_extras.py", plugin)
    (plugin / "app.py").write_text(with_extras((plugin / "app.py").read_text()))
    (plugin / "plugin.toml").write_text(with_packages((plugin / "plugin.toml").read_text()))
    run("build the component", [program, "plugin", "build", plugin], place / "component.log")
    to.mkdir(parents=True, exist_ok=True)
    written = to / "python.wasm"
    shutil.copy(plugin / "target/python.wasm", to / "python.wasm.part")
    os.replace(to / "python.wasm.part", written)
    shutil.rmtree(plugin)
    print(f"{written}: {written.stat().st_size / 1e6:.0f} MB")


def with_extras(app):
    """The interpreter's `app.py` with what numpy needs."""
    for line, behind in ADDED.items():
        if app.count(line) != 1:
            raise SystemExit(f"error: plugins/python/app.py has not one line `{line.strip()}`; name another one in ADDED")
        app = app.replace(line, line + behind)
    return app


def with_packages(manifest):
    """The plugin's manifest with numpy in its version, and the folder of packages that its image is made with."""
    module = 'module = "app"\n'
    manifest, versions = re.subn(r'(?m)^version = "([^"]+)"$', rf'version = "\1+numpy.{NUMPY.version}"', manifest)
    if versions != 1 or manifest.count(module) != 1:
        raise SystemExit("error: plugins/python/plugin.toml has not one `version` and one `module`; change `with_packages`")
    # Beside the plugin and not in it: the linker of components would take each library twice.
    return manifest.replace(module, f'{module}paths = ["../packages"]\n')


if __name__ == "__main__":
    main()
