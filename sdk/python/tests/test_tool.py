"""A tool is its typed methods."""

import unittest
from typing import Annotated, Any

from longhaul_sdk import (
    CallContext,
    DidNotHappen,
    EffectClass,
    FailedError,
    Field,
    Happened,
    InvalidArgumentsError,
    Tool,
    ToolResult,
    Unknown,
    UnknownFunctionError,
    Verification,
    function,
    tool,
)
from longhaul_sdk.testing import Host


class MailBox(Tool):
    """Sends letters.

    This is for whoever reads the code.
    """

    def __init__(self) -> None:
        self.sent = 0

    @function(effect="verifiable")
    def send(self, to: Annotated[str, Field("who gets it", min_length=1)], text: str = "") -> dict[str, Any]:
        """Sends a letter
        to somebody.

        More.
        """
        self.sent += 1
        return {"to": to, "sent": self.sent}

    @send.prepare
    def _before(self, to: str, context: CallContext, text: str = "") -> Any:
        return {"letters": 0, "key": context.idempotency_key}

    @send.verify
    def _was_sent(self, prepared: Any, to: str, text: str = "", *, about: CallContext) -> Verification:
        happened = Happened({"to": to, "was": prepared, "by": about.settings.get("name")})
        answers: dict[str, Verification] = {"a": happened, "b": DidNotHappen()}
        return answers.get(to, Unknown(f"did {to} get it?"))

    @function(name="who")
    def _who(self, *, context: CallContext) -> ToolResult:
        return ToolResult(context.settings.get("name"), truncated=True)


class Derived(MailBox):
    id = "post"

    @function(effect="read-only")
    def count(self) -> int:
        return 0


class Describing(unittest.TestCase):
    def test_a_class_describes_itself(self) -> None:
        info = tool.describe(MailBox)
        self.assertEqual((info.id, info.description), ("mail-box", "Sends letters."))
        send, who = info.functions
        self.assertEqual((send.name, send.description, send.effect), ("send", "Sends a letter to somebody.", EffectClass.VERIFIABLE))
        self.assertEqual(send.parameters["required"], ["to"])
        self.assertEqual(
            send.parameters["properties"]["to"], {"type": "string", "description": "who gets it", "minLength": 1}
        )
        self.assertEqual((who.name, who.effect, who.parameters["properties"]), ("who", EffectClass.ACTS, {}))

    def test_a_derived_class_has_the_functions_of_its_base(self) -> None:
        info = tool.describe(Derived)
        self.assertEqual((info.id, [one.name for one in info.functions]), ("post", ["send", "who", "count"]))
        self.assertEqual(len(tool.describe(MailBox).functions), 2)

    def test_what_cannot_be_described_is_refused(self) -> None:
        def verifiable(this: Any) -> None: ...
        def untyped(this: Any, x) -> None: ...  # type: ignore[no-untyped-def]
        def many(this: Any, *x: int) -> None: ...
        def odd(this: Any, x: set[int]) -> None: ...

        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "has no functions"),
            ({"f": function(effect="verifiable")(verifiable)}, "mark the method that can tell with `@verifiable.verify`"),
            ({"f": function()(untyped)}, "`x` of `untyped` has no type"),
            ({"f": function()(many)}, "must be an ordinary parameter"),
            ({"f": function()(odd)}, "no JSON Schema can be made of"),
        ]
        for members, text in cases:
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                tool.describe(type("Bad", (Tool,), members))
        with self.assertRaisesRegex(ValueError, "harmless"):
            function(effect="harmless")(verifiable)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "which is for functions with effect=\"verifiable\""):
            function()(verifiable).verify(verifiable)


class Calling(unittest.TestCase):
    def test_a_method_is_called_with_its_arguments(self) -> None:
        with Host() as host:
            for _ in range(2):
                # A new instance each time.
                self.assertEqual(host.call(MailBox, "send", {"to": "x"}), {"to": "x", "sent": 1})
            context = CallContext(settings={"name": "n"})
            self.assertEqual(host.run(MailBox, "call", "who", "{}", context), ToolResult("n", truncated=True))
        # And in plain Python it is a method.
        self.assertEqual(MailBox().send("x", text="y"), {"to": "x", "sent": 1})

    def test_wrong_calls_are_named(self) -> None:
        with Host() as host:
            for arguments, text in [
                ({}, "`to` is missing"),
                ({"to": 5}, "`to` must be a text, and is a number"),
                ({"to": ""}, "`to` must be at least 1 characters long, and is 0"),
                ({"to": "x", "cc": 1}, "`cc` is not an argument of `send`; known: to, text"),
                ({"to": "x", "text": None}, "`text` must be a text, and is null"),
                ("[]", "the arguments must be a JSON object, and is a list"),
                ("{", "the arguments cannot be read: Expecting property name"),
            ]:
                with self.subTest(text), self.assertRaises(InvalidArgumentsError) as caught:
                    host.call(MailBox, "send", arguments)  # type: ignore[arg-type]
                self.assertTrue(caught.exception.text.startswith(text), caught.exception.text)
            with self.assertRaises(UnknownFunctionError) as unknown:
                host.call(MailBox, "_who", {})
            self.assertEqual(unknown.exception.text, "`_who`; the tool `mail-box` has send, who")

    def test_verifying_asks_the_function(self) -> None:
        context = CallContext("k", settings={"name": "n"})
        with Host() as host:
            note = host.run(MailBox, "prepare", "send", '{"to": "a"}', context)
            self.assertEqual(note, '{"letters": 0, "key": "k"}')
            self.assertEqual(host.run(MailBox, "prepare", "who", "{}", context), "{}")
            for to, wanted in [
                ("a", Happened({"to": "a", "was": 1, "by": "n"})),
                ("b", DidNotHappen()),
                ("c", Unknown("did c get it?")),
            ]:
                self.assertEqual(host.run(MailBox, "verify", "send", f'{{"to": "{to}"}}', "1", context), wanted)
            self.assertIsInstance(host.run(MailBox, "verify", "who", "{}", "{}", context), Unknown)

    def test_a_stray_exception_is_a_failure_with_its_name(self) -> None:
        class Broken(Tool):
            @function()
            def f(self) -> None:
                raise KeyError("x")

        import contextlib
        import io

        with Host() as host, contextlib.redirect_stderr(io.StringIO()) as log:
            with self.assertRaises(FailedError) as caught:
                host.call(Broken, "f", {})
        self.assertEqual(caught.exception.text, "KeyError: 'x'")
        self.assertIn("KeyError: 'x'", log.getvalue())
