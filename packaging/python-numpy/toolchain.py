"""A C and a C++ compiler and an archiver of extension modules for the sandboxed CPython, as meson calls them.

The first argument is `cc`, `c++` or `ar`. zig compiles, and `wasm-ld` links a shared library whose symbols the libraries
of the runtime provide. It refuses to link what no library has, also the little programs by which meson asks for a function:
without that, a call of a function that is not there would only fail where it runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import wasm

HERE = Path(__file__).resolve().parent

# `build.py` writes it: the path of zig, the names that the libraries export, the objects of the C++ runtime, and the one with
# the status of floating point.
SETTINGS = "LONGHAUL_TOOLCHAIN"

TARGET = ["-target", "wasm32-wasi", "-fPIC", "-fno-sanitize=all", "-D_GNU_SOURCE", "-include", str(HERE / "status.h")]
EMULATED = [f"-D_WASI_EMULATED_{part}" for part in ("SIGNAL", "PROCESS_CLOCKS", "GETPID", "MMAN")]

# The module that has the status of floating point for all of them, and the names that it exports.
STATUS_MODULE = "_multiarray_umath"
STATUS = {"longhaul_fetestexcept", "longhaul_feraiseexcept", "longhaul_feclearexcept"}

# What the linker of components provides.
LINKER = {"memory", "__indirect_function_table", "__stack_pointer", "__memory_base", "__table_base"}

COMPILE_ONLY = {"-c", "-E", "-S", "-M", "-fsyntax-only"}
SOURCES = (".c", ".cc", ".cpp", ".cxx")
OBJECTS = (".o", ".a")
# Options of a compilation with a value of their own; no other option that meson passes to a link has one.
WITH_VALUE = {"-x", "-include", "-isystem", "-I", "-D"}


def main(name, arguments):
    settings = json.loads(Path(os.environ[SETTINGS]).read_text())
    zig = settings["zig"]
    if name == "ar":
        os.execv(zig, [zig, "ar", *arguments])
    if "-Wl,--version" in arguments:
        # By this line meson knows the kind of the linker. The other options for it are left out below.
        print("LLD 20.1.2 (compatible with GNU linkers)")
        return 0
    compiler = [zig, name, *TARGET, *EMULATED]
    if "--version" in arguments or COMPILE_ONLY & set(arguments):
        os.execv(zig, [*compiler, *arguments])
    return link(settings, compiler, arguments)


def link(settings, compiler, arguments):
    output, sources, objects, flags = parts(arguments)
    is_module = "-shared" in arguments
    with tempfile.TemporaryDirectory() as scratch:
        for source in sources:
            made = f"{scratch}/{len(objects)}.o"
            compiled = subprocess.call([*compiler, *flags, "-c", source, "-o", made])
            if compiled:
                return compiled
            objects.append(made)
        name = output.name.partition(".")[0]
        if name == STATUS_MODULE:
            objects.append(settings["status"])
        entry = [f"--export=PyInit_{name}"] if is_module else ["--no-gc-sections"]
        command = [settings["zig"], "wasm-ld", "-shared", "--no-entry", "--allow-undefined", "--strip-debug", *entry]
        runtime = ["--start-lib", *settings["runtime"], "--end-lib"]
        linked = subprocess.run([*command, *objects, *runtime, "-o", output], stderr=subprocess.PIPE, text=True)
    sys.stderr.write("".join(line for line in linked.stderr.splitlines(True) if "not yet stable" not in line))
    if linked.returncode:
        return linked.returncode
    return refuse_missing(output, STATUS | set(settings["exports"]))


def parts(arguments):
    """The output, the sources, the objects and the options of the compiler in the arguments of a link."""
    output, sources, objects, flags = Path("a.out"), [], [], []
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o":
            output = Path(next(rest))
        elif argument in WITH_VALUE:
            flags += [argument, next(rest)]
        elif argument.startswith("-"):
            if argument.startswith(("-I", "-D", "-std", "-O", "-f", "-W")) and not argument.startswith("-Wl,"):
                flags.append(argument)
        elif argument.endswith(OBJECTS):
            objects.append(argument)
        elif argument.endswith(SOURCES):
            sources.append(argument)
    return output, sources, objects, flags


def refuse_missing(output, known):
    module = output.read_bytes()
    known = known | LINKER | wasm.exports(module)
    missing = sorted({name for _, name in wasm.imports(module) if name not in known})
    if not missing:
        return 0
    output.unlink()
    print("error: no library of the runtime has: " + " ".join(missing), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
