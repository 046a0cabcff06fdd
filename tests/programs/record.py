#!/usr/bin/env python3
"""Records what the real interpreters make of the programs beside this file, into the `expected.json` of each language.

    tests/programs/record.py [javascript | python]...

Each program runs in an empty directory, without input, in UTC. Standard output and the exit code are kept; standard
error, which names paths and versions, is not. A program that takes longer than ten seconds is a mistake of its author.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = {"javascript": "node", "python": "python3"}
ENVIRONMENT = {"PATH": None, "HOME": "/", "TZ": "UTC", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def record(language, directory):
    command = COMMANDS[language]
    environment = ENVIRONMENT | {"PATH": os.environ["PATH"]}

    def run(*arguments):
        return subprocess.run([command, *arguments], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=10, check=False)

    version = run("--version").stdout.decode().split()[-1]
    programs = {}
    for path in sorted((HERE / language).iterdir()):
        if path.name in ("differences.txt", "expected.json"):
            continue
        ran = run(str(path))
        programs[path.name] = {"exit_code": ran.returncode, "stdout": ran.stdout.decode("utf-8", "replace")}
    text = json.dumps({"recorded_from": f"{command} {version}", "programs": programs}, indent=1, ensure_ascii=False)
    (HERE / language / "expected.json").write_text(text + "\n", encoding="utf-8")
    print(f"{language}: {len(programs)} programs with {command} {version}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        for language in sys.argv[1:] or COMMANDS:
            record(language, directory)
