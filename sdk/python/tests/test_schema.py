"""Schemas come from type hints, and what does not fit them is named."""

import dataclasses
import unittest
from typing import Annotated, Any, Literal, Optional

from longhaul_sdk import Field, InvalidError, read_as, schema_of


@dataclasses.dataclass
class Place:
    """Where it is."""

    lat: Annotated[float, Field("degrees north", minimum=-90, maximum=90)]
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Plain:
    a: int


@dataclasses.dataclass
class Endless:
    inner: Optional["Endless"]


class Schemas(unittest.TestCase):
    def test_a_type_has_its_schema(self) -> None:
        for hint, schema in [
            (str, {"type": "string"}),
            (bool, {"type": "boolean"}),
            (Any, {}),
            (list, {"type": "array", "items": {}}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
            (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Annotated[str, "a name"], {"type": "string", "description": "a name"}),
            (Annotated[list[str], Field(min_length=1)], {"type": "array", "items": {"type": "string"}, "minItems": 1}),
            (Plain, self._object({"a": {"type": "integer"}}, ["a"])),
        ]:
            with self.subTest(str(hint)):
                self.assertEqual(schema_of(hint), schema)

    def test_a_dataclass_has_its_text_and_what_must_be_there(self) -> None:
        lat = {"type": "number", "description": "degrees north", "minimum": -90, "maximum": 90}
        tags = {"type": "array", "items": {"type": "string"}}
        wanted = self._object({"lat": lat, "tags": tags}, ["lat"])
        self.assertEqual(schema_of(Place), {"description": "Where it is.", **wanted})

    def test_what_no_schema_can_be_made_of_is_refused(self) -> None:
        for hint, text in [
            (set, "no JSON Schema can be made of"),
            (bytes, "no JSON Schema can be made of"),
            (tuple[int, int], "no JSON Schema can be made of"),
            (dict[int, str], "must be `str`"),
            (Endless, "contains itself"),
            (Annotated[str, Field(minimum=1)], "are for int and float"),
            (Annotated[int, Field(max_length=1)], "are for str, list and dict"),
            (Literal[b"x"], "can hold texts"),
        ]:
            with self.subTest(str(hint)), self.assertRaisesRegex(TypeError, text):
                schema_of(hint)

    def _object(self, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class Reading(unittest.TestCase):
    def test_values_are_read_as_their_type(self) -> None:
        for hint, value, wanted in [
            (int, 3.0, 3),
            (float, 3, 3.0),
            (Optional[int], None, None),
            (str | int, 5, 5),
            (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
            (Place, {"lat": 1}, Place(1.0)),
            (list[Plain], [{"a": 1}], [Plain(1)]),
            (Annotated[str, Field(max_length=2)], "äö", "äö"),
        ]:
            with self.subTest(str(hint)):
                read = read_as(hint, value)
                self.assertEqual((read, type(read)), (wanted, type(wanted)))

    def test_what_is_wrong_is_named(self) -> None:
        for hint, value, text in [
            (int, 3.5, "`x` must be a whole number, and is a number"),
            (int, True, "`x` must be a whole number, and is a boolean"),
            (float, "1", "`x` must be a number, and is a text"),
            (float, 10**400, "`x` is out of range"),
            (str, None, "`x` must be a text, and is null"),
            (Optional[int], "1", "`x` must be a whole number, and is a text"),
            (str | int, [], "`x` fits none of: `x` must be a text, and is a list; `x` must be a whole number, and is a list"),
            (Literal[1], True, "`x` must be one of `1`"),
            (list[int], [1, "2"], "`x[1]` must be a whole number, and is a text"),
            (dict[str, int], {"k": None}, "`x.k` must be a whole number, and is null"),
            (Place, {}, "`x.lat` is missing"),
            (Place, {"lat": 91}, "`x.lat` must be at most 90, and is 91"),
            (Place, {"lat": 1, "lon": 2}, "`x.lon` is not a field of Place; known: lat, tags"),
            (Annotated[str, Field(min_length=1)], "", "`x` must be at least 1 characters long, and is 0"),
            (Annotated[list[str], Field(max_length=1)], ["a", "b"], "`x` must be at most 1 entries long, and is 2"),
        ]:
            with self.subTest(str(hint)), self.assertRaises(InvalidError) as caught:
                read_as(hint, value, "x")
            self.assertEqual(caught.exception.text, text)
