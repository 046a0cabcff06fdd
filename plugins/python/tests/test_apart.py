"""Checks judged apart from the work, each in two processes, and what the judge makes of a work that lies."""

import os
import pathlib
import threading
import traceback
import unittest
from concurrent.futures import ThreadPoolExecutor

import longhaul_apart
import longhaul_objects
import longhaul_wire
from tests.pair import apart, beside

try:
    import tomllib
except ImportError:
    raise unittest.SkipTest("it takes `tomllib`, which is in Python from 3.11 on") from None

HERE = pathlib.Path(__file__).parent
CASES = tomllib.loads((HERE / "apart.toml").read_text())["case"]
CHEATS = HERE.parents[2] / "host/tests/runs/rubric/cheats.toml"

# What all the checks of the cheats want.
HONEST = """
import contextlib

def add(a, b):
    return a + b

adding = contextlib.nullcontext
"""


def ended(files, check):
    """How a check ended, and everything that it was answered with."""
    said = apart(files, check)
    if said["beside"] is not None:
        return "beside", said
    return "gone" if said["gone"] else "pass" if said["exit_code"] == 0 else "fail", said


def laid_out(case):
    """The files and the check of a case, with a name in the place of WORK."""
    files = {path: text.replace("WORK", "work") for path, text in case.get("files", {}).items()}
    files = {path.replace("WORK", "work"): text for path, text in files.items()}
    return {"work.py": case["work"], **files}, case["check"].replace("WORK", "work")


def each(function, cases):
    """What a function makes of each case, some at a time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return zip(cases, pool.map(function, cases))


class Apart(unittest.TestCase):
    def test_checks_of_every_shape_end_as_they_should(self):
        def both(case):
            return ended(*laid_out(case)), beside(*laid_out(case))

        for case, ((end, said), together) in each(both, CASES):
            with self.subTest(case["name"]):
                self.assertEqual(end, case["ends"], said)
                self.assertEqual(said["errors"], "")
                self.assertEqual(together["exit_code"] == 0, end != "fail", together)

    def test_no_work_passes_by_deciding_how_a_check_ends(self):
        bases, cheats = (tomllib.loads(CHEATS.read_text())[table] for table in ("bases", "cheats"))
        cheats = [{**cheat, "check": bases[cheat.get("base", "plain")]} for cheat in cheats]
        for cheat, (end, said) in each(lambda cheat: ended(*laid_out(cheat)), cheats):
            with self.subTest(cheat["name"]):
                self.assertIn(end, ["beside"] if cheat.get("beside") else ["fail", "gone"], said)

    def test_a_work_that_does_as_it_should_passes_each_of_those_checks(self):
        bases = tomllib.loads(CHEATS.read_text())["bases"].items()
        works = [{"name": name, "check": check, "work": HONEST} for name, check in bases]
        for work, (end, said) in each(lambda work: ended(*laid_out(work)), works):
            with self.subTest(work["name"]):
                self.assertEqual(end, "pass", said)


class _Told:
    """A pipe whose other end answers what it likes."""

    def __init__(self, **answer):
        self.answer = {"printed": ["", ""], "put": [], **answer}

    def send(self, request):
        self.answer.setdefault("n", request["n"])

    def receive(self):
        return self.answer


ERROR = {
    "class": ["builtin", "ValueError"], "object": 1, "args": ["tuple", []], "texts": ["", ""], "fields": [], "frames": [],
    "cause": None, "context": None, "suppress": False,
}  # fmt: skip

# Answers that no server gives.
LIES = [
    {"value": []},
    {"value": {}},
    {"value": [[]]},
    {"value": ["shared", 7]},
    {"value": ["shared"]},
    {"value": ["object", "1", True, False, []]},
    {"value": ["object", 1, 1, False, []]},
    {"value": ["object", 1, True, True, []]},
    {"value": ["object", 1, True, False]},
    {"value": ["object", 1, True, False, 5]},
    {"value": ["object", 1, True, False, [["eval", ["1"]]]]},
    {"value": ["eval", ["1"]]},
    {"value": ["int", "x"]},
    {"value": ["int", 5]},
    {"value": ["float", "five"]},
    {"value": ["bytes", ["\u00e9"]]},
    {"value": ["bytes", []]},
    {"value": ["date", [2024, 13, 1]]},
    {"value": ["Fraction", [1, 0]]},
    {"value": ["Decimal", ["x"]]},
    {"value": ["range", [1, 2, 0]]},
    {"value": ["frozenset", [["shared", 1]]], "put": [[1, "list", []]]},
    {"value": ["frozenset", [["object", 1, True, False, []]]]},
    {"value": ["class", 1, "E", "m", []]},
    {"value": ["class", 1, "E", "m", [["builtin", "int"]]]},
    {"value": ["class", 1, "E\0", "m", [["builtin", "ValueError"]]]},
    {"value": ["class", 1, "E", "m", [["builtin", "UnicodeDecodeError"], ["builtin", "OSError"]]]},
    {"value": ["library", "unittest.case", "SkipTest"]},
    {"value": ["library", "longhaul_tests", "Failed"]},
    {"value": ["library", "os", "system"]},
    {"value": ["builtin", "eval"]},
    {"value": ["builtin", "type"]},
    {"value": 1, "n": 99},
    {"value": 1, "n": True},
    {"value": 1, "printed": None},
    {"value": 1, "printed": [1, 2]},
    {"value": 1, "put": None},
    {"value": 1, "put": [[1, "list"]]},
    {"value": 1, "put": [[0, "list", []]]},
    {"value": 1, "put": [[-1, "list", []]]},
    {"value": 1, "put": [["1", "list", []]]},
    {"value": 1, "put": [[1, "type", []]]},
    {"value": 1, "put": [[1, "dict", [1]]]},
    {"value": 1, "put": [[1, "dict", [["shared", 1], 1]]]},
    {"value": 1, "put": [[1, "set", [["shared", 1]]]]},
    {"value": 1, "put": [[1, "list", []], [1, "dict", []]]},
    {"value": 1, "put": [[1, "defaultdict", ["eval"]]]},
    {"value": 1, "put": [[1, "bytearray", [5]]]},
    {"value": 1, "put": [[1, "bytearray", []]]},
    {"value": 1, "put": [[1, "list", [0] * 200_001]]},
    {"no": 1},
    {"raised": None},
    {"raised": {}},
    {"raised": ERROR | {"class": ["builtin", "print"]}},
    {"raised": ERROR | {"class": ["builtin", "ExceptionGroup"]}},
    {"raised": ERROR | {"class": ["builtin", "UnicodeDecodeError"]}},
    {"raised": ERROR | {"class": None}},
    {"raised": ERROR | {"args": 1}},
    {"raised": ERROR | {"texts": [""]}},
    {"raised": ERROR | {"fields": [["args", 1]]}},
    {"raised": ERROR | {"fields": [[1, 1]]}},
    {"raised": ERROR | {"fields": [["__class__", 1], 1]}},
    {"raised": ERROR | {"frames": [["f", 1]]}},
    {"raised": ERROR | {"frames": [["f", "1", "g", ""]]}},
    {"raised": ERROR | {"suppress": 1}},
    {"raised": ERROR | {"cause": 1}},
    {"raised": ERROR | {"object": None}},
]

# What is strange and still only data.
ODD = [
    ({"raised": ERROR}, ValueError),
    ({"raised": ERROR | {"fields": [["__class__", 1], ["_x", 1], ["a b", 1], ["x", 1]]}}, ValueError),
    ({"raised": ERROR | {"frames": [["<python>", 1, "\u00e9\0", "x"], ["/work/a\0", 0, "g", ""]]}}, ValueError),
    ({"raised": ERROR | {"frames": [["", 99_999_999, "", ""], ["/work/\ud800", 7, "\ud800", "\ud800"]]}}, ValueError),
    ({"raised": ERROR | {"class": ["builtin", "StopIteration"]}}, RuntimeError),
    ({"raised": ERROR | {"class": ["builtin", "SystemExit"]}}, SystemExit),
    ({"raised": ERROR | {"class": ["class", 3, "AssertionError", "builtins", [["builtin", "Exception"]]]}}, Exception),
]


class Lies(unittest.TestCase):
    def asked(self, answer):
        longhaul_objects.NotApart.why = None
        judge = longhaul_apart._Judge(_Told(**answer), "/work")
        return judge.ask("get", None, "x")

    def tearDown(self):
        longhaul_objects.NotApart.why = None

    def test_an_answer_that_no_server_gives_decides_nothing(self):
        for lie in LIES:
            with self.subTest(str(lie)[:200]), self.assertRaises(longhaul_objects.NotApart):
                self.asked(lie)

    def test_an_odd_answer_is_data(self):
        for answer, expected in ODD:
            with self.subTest(str(answer)), self.assertRaises(expected) as caught:
                self.asked(answer)
            self.assertNotIsInstance(caught.exception, AssertionError)
            "".join(traceback.format_exception(caught.exception))

    def test_a_line_that_does_not_end_is_not_kept(self):
        for line in (b"x" * (longhaul_wire.LINE_BYTES_MAX + 2), b"[" * 100_000 + b"\n", b"\xff\n", b"[]\n", b"1\n"):
            reads, writes = os.pipe()
            writer = threading.Thread(target=_write, args=(writes, line))
            writer.start()
            with self.subTest(line[:20]), self.assertRaises(longhaul_wire.Broken):
                longhaul_wire.Pipe(reads, None).receive()
            os.close(reads)
            writer.join()


def _write(descriptor, line):
    with open(descriptor, "wb") as file:
        try:
            file.write(line)
            file.flush()
        except BrokenPipeError:
            # Whoever reads has had enough.
            pass
