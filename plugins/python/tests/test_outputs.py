"""Values as typed outputs: each in the form that says most, and all within bounds."""

import json
import unittest

import longhaul_outputs
from longhaul_outputs import Outputs, output_of


class Shown:
    """A value that says how it is shown."""

    def __init__(self, **methods):
        for name, value in methods.items():
            setattr(self, name, lambda value=value: value)


class Frame:
    columns = ["n", "text"]

    def __init__(self, count):
        self.count = count

    def itertuples(self, index, name):
        return ((number, "x" * 2_000) for number in range(self.count))

    def __len__(self):
        return self.count


class Broken:
    def __repr__(self):
        raise ValueError("x")


class TypedOutputs(unittest.TestCase):
    def test_plain_data_is_json_and_what_json_does_not_keep_is_text(self):
        for value in (True, 7, 1.5, "text", [], {"a": [None, {"b": 1}]}):
            self.assertEqual(output_of(value), {"kind": "json", "value": value})
        for value in (float("nan"), 1 << 60, (1,), {1: 2}, {"a": {1}}, object, "\ud800"):
            self.assertEqual(output_of(value)["kind"], "text", value)
        deep = []
        for _ in range(60):
            deep = [deep]
        self.assertEqual(output_of(deep)["kind"], "text")

    def test_a_value_that_says_how_it_is_shown_is_a_picture(self):
        self.assertEqual(output_of(Shown(_repr_png_=b"\x89PNG")), {"kind": "png", "base64": "iVBORw=="})
        self.assertEqual(output_of(Shown(_repr_png_="iVBO\nRw==")), {"kind": "png", "base64": "iVBORw=="})
        self.assertEqual(output_of(Shown(_repr_svg_=("<svg/>", {}))), {"kind": "svg", "text": "<svg/>"})
        both = output_of(Shown(_repr_png_=None, _repr_svg_="<svg/>"))
        self.assertEqual(both["kind"], "svg")
        self.assertEqual(output_of(Shown(_repr_html_="<script>"))["kind"], "text")

    def test_a_table_has_its_first_rows_and_the_number_of_all(self):
        table = output_of(Frame(1_500))
        self.assertEqual((table["kind"], table["columns"], table["rows_total"]), ("table", ["n", "text"], 1_500))
        self.assertEqual((len(table["rows"]), table["rows"][3][0]), (1_000, 3))
        self.assertLess(len(table["rows"][0][1]), 1_010)

    def test_a_value_that_cannot_be_shown_says_so(self):
        self.assertEqual(output_of(Broken())["text"], "<Broken> (its repr raised ValueError)")
        self.assertLess(len(output_of(Shown())["text"]), 200)

    def test_outputs_are_bounded_in_number_and_in_bytes(self):
        outputs = Outputs()
        outputs.display(*range(longhaul_outputs.OUTPUTS_MAX + 5))
        self.assertEqual((len(outputs.kept), outputs.dropped), (longhaul_outputs.OUTPUTS_MAX, 5))
        outputs = Outputs()
        outputs.display("x" * longhaul_outputs.BYTES_MAX, 1)
        self.assertEqual((outputs.kept, outputs.dropped), ([{"kind": "json", "value": 1}], 1))

    def test_outputs_are_bounded_in_values(self):
        outputs = Outputs()
        outputs.display([0] * longhaul_outputs.VALUES_MAX, [{"a": 0}] * (longhaul_outputs.VALUES_MAX // 4), 1)
        self.assertEqual((len(outputs.kept), outputs.dropped), (2, 1))
        self.assertEqual(outputs.kept[-1], {"kind": "json", "value": 1})

    def test_what_was_shown_stays_as_it_was_whatever_becomes_of_the_value(self):
        outputs, items = Outputs(), [1]
        outputs.display(items)
        items.append(items)
        self.assertEqual(outputs.kept, [{"kind": "json", "value": [1]}])
        self.assertEqual(json.dumps(outputs.kept), '[{"kind": "json", "value": [1]}]')

    def test_the_last_expression_is_shown_and_none_is_not(self):
        def shown(source):
            lines = []
            outputs = Outputs(lines.append)
            longhaul_outputs.run(source, "<python>", {"display": outputs.display}, outputs)
            return [json.loads(line).get("value") for line in lines]

        self.assertEqual(shown("display(1)\nx = 2\nx + 1"), [1, 3])
        self.assertEqual(shown("x = 2"), [])
        self.assertEqual(shown("None"), [])
        self.assertEqual(shown(""), [])
        self.assertEqual(shown("from __future__ import annotations\n5"), [5])


if __name__ == "__main__":
    unittest.main()
