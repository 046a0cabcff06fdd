"""JSON that others wrote is read within limits, and what cannot be read is said."""

import dataclasses
import enum
import json
import unittest
from typing import Any

from longhaul_sdk import InvalidError, jsontext

from .contract import SDK

CASES = SDK.parent.parent / "tests" / "cases" / "action_json.json"


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Thing:
    color: Color
    parts: tuple[int, ...]


class Loads(unittest.TestCase):
    def test_what_is_json_is_read(self) -> None:
        for text, value in [
            ("1", 1),
            ('"\\ud83d\\ude00"', "😀"),
            ("[" * 127 + "]" * 127, None),
            ('["' + "[{" * 1_000 + '"]', None),
            ('["\\"[[", "]]"]', ['"[[', "]]"]),
        ]:
            with self.subTest(text[:20]):
                read = jsontext.loads("it", text)
                self.assertEqual(read, json.loads(text) if value is None else value)

    def test_what_cannot_be_read_is_said(self) -> None:
        for text, wrong in [
            ("", "Expecting value"),
            ("NaN", "`NaN` is not JSON"),
            ("-Infinity", "`-Infinity` is not JSON"),
            ("1e999", "`1e999` is out of range"),
            ("1" * 5_000, "4300"),
            ('"\\ud800"', "half of a surrogate pair"),
            ('"\\uD83D"', "half of a surrogate pair"),
            ("[" * 128 + "]" * 128, "deeper than 127"),
            ("[" * 1_000_000, "deeper than 127"),
            ('{"a":' * 1_000_000, "deeper than 127"),
            ('{"a" 1}', "Expecting ':'"),
        ]:
            with self.subTest(text[:20]), self.assertRaises(InvalidError) as caught:
                jsontext.loads("it", text)
            self.assertIn("it cannot be read: ", caught.exception.text)
            self.assertIn(wrong, caught.exception.text)

    def test_settings_that_nobody_wrote_are_empty(self) -> None:
        self.assertEqual(jsontext.loads_object("settings", " "), {})
        with self.assertRaisesRegex(InvalidError, "settings must be a JSON object, and is a list"):
            jsontext.loads_object("settings", "[]")


class Dumps(unittest.TestCase):
    def test_values_of_python_become_json(self) -> None:
        self.assertEqual(jsontext.dumps(Thing(Color.RED, (1, 2))), '{"color": "red", "parts": [1, 2]}')
        self.assertEqual(jsontext.dumps({"ä": None}), '{"ä": null}')

    def test_what_json_has_no_place_for_is_refused(self) -> None:
        deep: Any = 0
        for _ in range(900):
            deep = {"a": deep}
        endless: list[Any] = []
        endless.extend([endless, endless])
        for value, text in [
            ({1, 2}, "no place for `set`"),
            (float("nan"), "not JSON compliant"),
            (deep, "deeper than 127"),
            (endless, "contains itself"),
        ]:
            with self.subTest(text), self.assertRaisesRegex((TypeError, ValueError), text):
                jsontext.dumps(value)


class FirstObject(unittest.TestCase):
    def test_it_is_found_in_every_case_of_the_suite(self) -> None:
        cases = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
        self.assertGreaterEqual(len(cases), 10)
        for case in cases:
            with self.subTest(case["id"]):
                self.assertEqual(jsontext.first_object(case["input"]), case["expected"])

    def test_the_first_that_is_wanted_wins(self) -> None:
        text = 'so {"a": 1} and {"thought": "x {\\"action\\": 0}"} then {"action": "y"} {"action": "z"}'
        self.assertEqual(jsontext.first_object(text, lambda value: "action" in value), {"action": "y"})
        self.assertIsNone(jsontext.first_object("{" * 100_000))
        for false_start in ('{"a":', '{"', '{\\"', '{\\\\"', '"{', "[{", '{"a": 1, '):
            self.assertIsNone(jsontext.first_object(false_start * 50_000), false_start)


class Cutting(unittest.TestCase):
    def test_cuts_say_what_is_missing(self) -> None:
        self.assertEqual(jsontext.cut("äöü", 3), "äöü")
        self.assertEqual(jsontext.cut("äöü", 2), "äö… (1 more characters)")
        self.assertEqual([jsontext.tail("äöü", n) for n in (0, 2, 9)], ["", "öü", "äöü"])
