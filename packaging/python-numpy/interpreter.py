"""What the interpreter of the sandbox says of itself: its configuration, and the names that its libraries export.

A component with nothing but the interpreter is made to look at it. Of its configuration a `pyconfig.h` is made, since that
of no other build of CPython fits, and the answer to the questions of numpy's build, which cannot start the interpreter.
"""

import json
import os
import re
import shutil

import wasm
from pins import PYTHON
from place import once, python, run

# The least that a component needs.
WORLD = "package longhaul:probe;\nworld probe { export tell: func() -> string; }\n"
PROBE = """\
import importlib, json, sysconfig
import wit_world
VARIABLES = json.dumps(importlib.import_module(sysconfig._get_sysconfigdata_name()).build_time_vars)
open("/0/variables.json", "w").write(VARIABLES)
class WitWorld(wit_world.WitWorld):
    def tell(self):
        return VARIABLES
"""

# The first line of the program that the package would install names an interpreter; this is the rest.
COMPONENTIZE = "import sys; sys.argv[0] = 'componentize-py'; from componentize_py import script; sys.exit(script())"

# Without it `fdopen`, `fseeko`, `localtime_r`, `strtold_l` and others are undeclared.
GNU = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n"

# `sysconfig` keeps the configuration among its variables, without names that begin with an underscore. Of the rest these
# are names of the header.
NAME = re.compile(r"(HAVE_|SIZEOF_|ALIGNOF_|WITH_|Py_|PTHREAD_|DOUBLE_|ENABLE_|STDC_|RETSIGTYPE|TM_IN|SYS_SELECT|USE_)\w*")


def probe(place, tools):
    """The names that the libraries of the interpreter export, and its variables."""
    folder, written, exported = place / "probe", place / "probe/probe.wasm", place / "probe/exports.json"
    with once(written) as missing:
        if missing:
            (folder / "app.py").write_text(PROBE)
            (folder / "world.wit").write_text(WORLD)
            run("look at the interpreter of the sandbox",
                python("-c", COMPONENTIZE, "--wit-path", folder / "world.wit", "--world", "probe", "componentize",
                       "--python-path", folder, "app", "--output", written),
                place / "probe.log", env=os.environ | {"PYTHONPATH": str(tools / "componentize-py")})  # fmt: skip
            libraries = filter(wasm.is_library, wasm.modules(written.read_bytes()))
            exported.write_text(json.dumps(sorted(set().union(*map(wasm.exports, libraries)))))
    return json.loads(exported.read_text()), json.loads((folder / "variables.json").read_text())


def configuration(variables):
    """The text of `pyconfig.h`."""
    lines = []
    for name, value in sorted(variables.items()):
        # A zero stands for what is not defined, but for sizes.
        if not NAME.fullmatch(name) or (value in (0, "") and not name.startswith(("SIZEOF_", "ALIGNOF_"))):
            continue
        if isinstance(value, int) or value.isidentifier():
            lines.append(f"#define {name} {value}\n")
    return f"#ifndef Py_PYCONFIG_H\n#define Py_PYCONFIG_H\n{GNU}{''.join(lines)}#endif\n"


def include(place, headers, variables):
    """The headers with the configuration of this interpreter in the place of their own."""
    folder = place / "include"
    with once(folder) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(headers, folder, ignore=shutil.ignore_patterns("pyconfig*.h"))
            (folder / "pyconfig.h").write_text(configuration(variables))
    return folder


def answer(folder, variables):
    """What the interpreter would tell meson of itself, if it could be started here."""
    library, site = f"/usr/lib/python{PYTHON}", f"/usr/lib/python{PYTHON}/site-packages"
    paths = {"stdlib": library, "platstdlib": library, "purelib": site, "platlib": site, "include": str(folder),
             "platinclude": str(folder), "scripts": "/usr/bin", "data": "/usr"}  # fmt: skip
    own = {"LIBPYTHON": "", "INCLUDEPY": str(folder), "CONFINCLUDEPY": str(folder), "base_prefix": "/usr", "prefix": "/usr"}
    return {"variables": variables | own, "paths": paths, "sysconfig_paths": paths,
            "install_paths": {name: path.removeprefix("/usr") for name, path in paths.items()}, "version": PYTHON,
            "platform": "wasi-wasm32", "is_pypy": False, "is_venv": False, "link_libpython": False,
            "suffix": variables["EXT_SUFFIX"], "limited_api_suffix": ".abi3.so", "is_freethreaded": False}  # fmt: skip
