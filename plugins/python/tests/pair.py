"""A judge and a work as two processes with a pipe between them, as the host runs two instances."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")


def apart(files, check):
    """What the judge answers, and under `errors` what either process complained about."""
    with tempfile.TemporaryDirectory() as directory:
        work = _lay_out(directory, files)
        to_work, from_judge = os.pipe()
        to_judge, from_work = os.pipe()
        # Each process only holds its own ends, so that the end of one is seen by the other.
        served = _start("serve", work, {}, to_work, from_work)
        judged = _start("check_apart", work, {"source": check}, to_judge, from_judge)
        for descriptor in (to_work, from_judge, to_judge, from_work):
            os.close(descriptor)
        answer, errors = _end(judged)
        errors += _end(served)[1]
        if not answer:
            raise RuntimeError(errors)
        return json.loads(answer) | {"errors": errors}


def beside(files, check):
    """What a check answers that shares its interpreter with the work."""
    with tempfile.TemporaryDirectory() as directory:
        work = _lay_out(directory, files)
        answer, errors = _end(_start("check", work, {"source": check}, subprocess.DEVNULL, subprocess.DEVNULL))
        if not answer:
            raise RuntimeError(errors)
        return json.loads(answer)


def _lay_out(directory, files):
    work = pathlib.Path(directory, "work")
    work.mkdir()
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return work


def _start(function, work, arguments, reads, writes):
    """A process, where it answers, and where it complains."""
    asked, answer, errors = (work.parent / f"{function}.{kind}" for kind in ("json", "answer", "errors"))
    asked.write_text(json.dumps(arguments))
    program = [sys.executable, "-B", CHILD, function, str(work), str(asked), str(answer)]
    with open(errors, "w") as stderr:
        return subprocess.Popen(program, stdin=reads, stdout=writes, stderr=stderr), answer, errors


def _end(started):
    process, answer, errors = started
    process.wait()
    return answer.read_text() if answer.exists() else "", errors.read_text()
