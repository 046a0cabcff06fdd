"""Runs the programs of `programs.toml` with Python of this machine and in the sandbox, and tells what is not the same.

    compare.py [--longhaul PROGRAM] [--python PYTHON] [NAME]...

`--python` has numpy of the same version. The sandbox is that of `longhaul exec`, which finds the interpreter with numpy as
the book tells. Output and exit codes are compared, and standard error is not, since it names paths. It ends with 1 when a
program differs without a reason, or has a reason and does not differ.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs.toml")
SECONDS_MAX = 120


class Program:
    """A program, and the name of the reason for which the sandbox prints something else."""

    def __init__(self, name, given):
        self.name = name
        self.source, self.differs = (given, None) if isinstance(given, str) else (given["source"], given["differs"])


def programs(text):
    """The programs of the list, and the reasons that they name."""
    listed = tomllib.loads(text)
    found = [Program(name, given) for name, given in listed["programs"].items()]
    unknown = {program.differs for program in found} - {None} - listed["reasons"].keys()
    if unknown:
        raise ValueError(f"no such reason: {', '.join(sorted(unknown))}")
    return found, listed["reasons"]


def output_of(command, source):
    """What a program printed, and its exit code; in an empty directory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "program.py"
        path.write_text(source)
        ran = subprocess.run([*command, str(path)], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=SECONDS_MAX, check=False)  # fmt: skip
    return ran.stdout.decode("utf-8", "replace") + f"exit code {ran.returncode}\n", ran.stderr.decode("utf-8", "replace")


def absolute(program):
    """The path of a program, since each one runs in another directory. A link of a virtual environment stays one."""
    found = shutil.which(program)
    if not found:
        raise SystemExit(f"error: there is no program `{program}`")
    return str(Path(found).absolute())


def verdict(program, native, sandboxed):
    """A word on the two outputs, and True when they are as the list says."""
    if native == sandboxed:
        return ("equal", True) if program.differs is None else (f"equal, and the list says: {program.differs}", False)
    return (f"differs: {program.differs}", True) if program.differs else ("differs", False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longhaul", default="longhaul")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    found, _ = programs(PROGRAMS.read_text())
    native_command, sandbox_command = [absolute(given.python)], [absolute(given.longhaul), "exec"]
    chosen = [program for program in found if program.name in given.names or not given.names]
    wrong = equal = 0
    for program in chosen:
        native, native_errors = output_of(native_command, program.source)
        sandboxed, sandboxed_errors = output_of(sandbox_command, program.source)
        word, is_right = verdict(program, native, sandboxed)
        print(f"{program.name:24} {word}", flush=True)
        equal += native == sandboxed
        wrong += not is_right
        if native != sandboxed and (given.names or not is_right):
            print(f"--- native\n{native}{native_errors}--- sandbox\n{sandboxed}{sandboxed_errors}---")
    print(f"{len(chosen)} programs, {equal} equal, {len(chosen) - equal - wrong} differ as listed, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
