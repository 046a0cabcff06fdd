"""The classes of the SDK have the contract's fields, and values cross the border unharmed."""

import contextlib
import dataclasses
import enum
import io
import unittest
from typing import Any

from longhaul_sdk import (
    BlockedError,
    Criterion,
    DeniedError,
    Error,
    FailedError,
    Goal,
    ImpossibleError,
    InvalidError,
    LimitError,
    Options,
    Outcome,
    OutcomeUnknownError,
    PlanStep,
    Retry,
    Task,
    TimedOutError,
    UnavailableError,
    UnknownFunctionError,
    WorkPlan,
    _bindings,
    checks,
    keyvalue,
)
from longhaul_sdk._records import CLASSES, JSON_FIELDS
from longhaul_sdk._roles import ROLES

from .contract import Err, Ok, component, example, pascal, read, snake

# An exception, or a plain value, stands for these.
WITHOUT_A_CLASS = {"denial", "limit-hit", "outage"}
PLAIN_VARIANTS = {"reply-format", "part", "verification"}


class Names(unittest.TestCase):
    def test_every_record_has_a_class_with_its_fields_in_their_order(self) -> None:
        interfaces, _ = read()
        seen = 0
        for interface in interfaces.values():
            for name, fields in interface.records.items():
                if name in WITHOUT_A_CLASS:
                    continue
                with self.subTest(name):
                    own = CLASSES[pascal(name)]
                    self.assertEqual([field.name for field in dataclasses.fields(own)], [snake(one) for one in fields])
                    seen += 1
        self.assertGreater(seen, 30)

    def test_what_is_json_in_the_contract_is_a_value_here(self) -> None:
        interfaces, _ = read()
        for interface in interfaces.values():
            for name, fields in interface.records.items():
                if name in WITHOUT_A_CLASS or name == "tool-call-request":
                    continue
                with self.subTest(name):
                    wanted = {snake(field) for field, kind in fields.items() if kind == ["json"]}
                    self.assertEqual(JSON_FIELDS[CLASSES[pascal(name)]], wanted)

    def test_enums_and_cases_have_the_names_of_the_contract(self) -> None:
        interfaces, _ = read()
        for interface in interfaces.values():
            for name, cases in interface.enums.items():
                with self.subTest(name):
                    own: Any = CLASSES[pascal(name)]
                    self.assertTrue(issubclass(own, enum.Enum))
                    self.assertEqual([member.value for member in own], cases)
                    self.assertEqual([member.name for member in own], [snake(case).upper() for case in cases])
            for name, variant in interface.variants.items():
                if name in PLAIN_VARIANTS or name.endswith("error"):
                    continue
                for case, kind in variant.items():
                    with self.subTest(f"{name} {case}"):
                        own = CLASSES[f"{pascal(name)}_{pascal(case)}"]
                        self.assertEqual(len(dataclasses.fields(own)), int(kind is not None))

    def test_every_case_of_an_error_of_an_import_becomes_an_exception(self) -> None:
        interfaces, _ = read()
        exported = {role.variant for role in ROLES} - {"ToolError"}
        for interface in interfaces.values():
            for name, variant in interface.variants.items():
                if name.endswith("error") and pascal(name) not in exported:
                    for case in variant:
                        self.assertIn(pascal(case), _bindings._IMPORT_ERRORS, name)

    def test_every_case_of_an_error_of_a_role_can_be_reached(self) -> None:
        interfaces, _ = read()
        variants = {pascal(name): cases for one in interfaces.values() for name, cases in one.variants.items()}
        for role in ROLES:
            reached = {case for _, case in role.error_cases} | {"Failed"}
            self.assertEqual(reached, {pascal(case) for case in variants[role.variant]}, role.interface)

    def test_every_role_exports_what_its_world_does(self) -> None:
        interfaces, worlds = read()
        for role in ROLES:
            self.assertEqual(worlds[f"{role.interface}-plugin"].exports, [role.interface])
            self.assertEqual(set(role.exports), set(interfaces[role.interface].functions))


class Exports(unittest.TestCase):
    def setUp(self) -> None:
        # Tracebacks of strays, which are for the log.
        self.log = self.enterContext(contextlib.redirect_stderr(io.StringIO()))

    def test_a_task_arrives_and_an_outcome_leaves(self) -> None:
        with component("agent-plugin") as made:
            agent = self._agent(lambda task: Outcome({"got": task.context, "é": None}, "done\ud800", 1, ["x"]))
            outcome = agent().run(self._task(made, context='{"a": [1]}'))
        self.assertEqual(type(outcome), made.named("Outcome"))
        self.assertEqual(outcome.output, '{"got": {"a": [1]}, "é": null}')
        self.assertEqual((outcome.summary, outcome.confidence, outcome.unknowns), ("done\ufffd", 1.0, ["x"]))

    def test_exceptions_become_the_case_of_the_role(self) -> None:
        for raised, case, text in [
            (ImpossibleError("no"), "Impossible", "no"),
            (BlockedError("which?"), "Blocked", "which?"),
            (InvalidError("odd"), "Failed", "odd"),
            (UnknownFunctionError("f"), "Failed", "unknown function: f"),
            (OutcomeUnknownError("it broke"), "Failed", "it broke, and what the call did is unknown"),
            (FailedError("so"), "Failed", "so"),
            (KeyError("k"), "Failed", "KeyError: 'k'"),
            (SystemExit(3), "Failed", "SystemExit: 3"),
            (RecursionError("deep"), "Failed", "RecursionError: deep"),
            (ValueError("\ud800" * 5_000), "Failed", "ValueError: " + "\ufffd" * 2_000 + "… (3000 more characters)"),
        ]:
            with self.subTest(case=case, text=text[:20]):
                value = self._failure(raised)
                self.assertEqual((type(value).__name__, value.value), (f"AgentError_{case}", text))

    def test_errors_of_services_keep_their_fields(self) -> None:
        denied = self._failure(DeniedError("no", "add it")).value
        self.assertEqual((denied.reason, denied.fix), ("no", "add it"))
        limit = self._failure(LimitError("steps_max", 8, 8)).value
        self.assertEqual((limit.name, limit.used, limit.max), ("steps_max", 8.0, 8.0))
        outage = self._failure(UnavailableError("down", 5)).value
        self.assertEqual((outage.reason, outage.retry_after_ms), ("down", 5))

    def test_an_error_that_does_not_fit_is_said_so(self) -> None:
        value = self._failure(UnavailableError("down", -1))
        self.assertEqual(type(value).__name__, "AgentError_Failed")
        self.assertIn("from 0 to 4294967295", value.value)

    def test_an_error_without_a_text_is_said_so(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no")

        self.assertEqual(self._failure(Mute()).value, "Mute: it cannot be shown")
        self.assertIn("Traceback", self.log.getvalue())
        self.assertEqual(self._failure(KeyboardInterrupt()).value, "KeyboardInterrupt")

    def test_what_does_not_fit_the_contract_is_named(self) -> None:
        for outcome, text in [
            (None, "TypeError: what `run` returned must be `Outcome`, and is null"),
            (Outcome(1, 5), "TypeError: `summary` of what `run` returned must be a text, and is a number"),  # type: ignore[arg-type]
            (Outcome(1, "", True), "TypeError: `confidence` of what `run` returned must be a number, and is a boolean"),
            (Outcome(1, "", None, "x"), "TypeError: `unknowns` of what `run` returned must be a list, and is a text"),  # type: ignore[arg-type]
            (Outcome({1, 2}, ""), "TypeError: JSON has no place for `set`"),
            (Outcome(float("nan"), ""), "ValueError: Out of range float values are not JSON compliant"),
        ]:
            with self.subTest(text), component("agent-plugin") as made:
                agent = self._agent(lambda task, outcome=outcome: outcome)
                with self.assertRaises(Err) as caught:
                    agent().run(self._task(made))
                self.assertTrue(caught.exception.value.value.startswith(text), caught.exception.value.value)

    def test_settings_that_are_no_object_are_refused(self) -> None:
        for text, wrong in [
            ("[]", "must be a JSON object"),
            ("{", "cannot be read"),
            ("[" * 200_000, "nests deeper than 127"),
        ]:
            with component("agent-plugin") as made:
                agent = self._agent(lambda task: Outcome(1, ""))
                with self.assertRaises(Err) as caught:
                    agent().run(self._task(made, settings=text))
                self.assertIn(wrong, caught.exception.value.value)

    def test_a_tool_answers_by_its_own_errors(self) -> None:
        with component("tool-plugin") as made:
            app = example("tool")
            info = app.Tool().describe("{}")
            self.assertEqual([type(one) for one in info.functions], [made.named("Function")] * 3)
            self.assertEqual(info.functions[1].effect, made.named("EffectClass").IDEMPOTENT)
            context = made.named("CallContext")("k", 1, 1, "{}")
            result = app.Tool().call("count", '{"text": "a b"}', context)
            self.assertEqual(app.Tool().prepare("count", '{"text": "a b"}', context), "{}")
            unsure = app.Tool().verify("count", '{"text": "a b"}', "{}", context)
            self.assertEqual(type(unsure).__name__, "Verification_Unknown")
            self.assertEqual(result.output, '{"words": 2, "lines": 1, "characters": 3}')
            for function, arguments, case in [
                ("nope", "{}", "UnknownFunction"),
                ("count", "{}", "InvalidArguments"),
                ("read", '{"name": "x"}', "Failed"),
            ]:
                with self.assertRaises(Err) as caught:
                    app.Tool().call(function, arguments, context)
                self.assertEqual(type(caught.exception.value).__name__, f"ToolError_{case}")

    def test_a_plan_goes_in_and_out(self) -> None:
        with component("planner-plugin") as made:
            app = example("planner")
            goal = made.named("Goal")("- a: do it\n- b: and it", "{}", "", [])
            plan = app.Planner().plan(goal)
            self.assertEqual([step.id for step in plan.steps], ["a", "b"])
            self.assertEqual(plan.steps[0].on_failure, made.named("OnFailure_Retry")(1))
            plan.steps[0].on_failure = made.named("OnFailure_Abort")()
            source = made.named("CheckBody_Source")(made.named("CheckSource")("python", "1"))
            plan.steps[0].checks = [made.named("CheckSpec")("c", source)]
            again = app.Planner().replan(goal, plan, [])
            self.assertEqual(again, plan)

    def test_a_class_that_is_none_is_refused_when_it_is_built(self) -> None:
        with component("agent-plugin"):
            app = example("agent")
            self.assertEqual(app.Agent.__name__, "Agent")
            with self.assertRaisesRegex(TypeError, "is for the world `tool-plugin`"):
                example("tool")

    def _agent(self, run: Any) -> Any:
        import longhaul_sdk

        namespace = {"run": lambda this, task: run(task), "__module__": __name__}
        longhaul_sdk.export(type("Probe", (longhaul_sdk.Agent,), namespace))
        return globals()["Agent"]

    def _task(self, made: Any, context: str = "{}", settings: str = "{}") -> Any:
        return made.named("Task")("t", "do", context, settings, [made.named("Criterion")("c", "x", None)], [], 1)

    def _failure(self, raised: BaseException) -> Any:
        def run(task: Task) -> Outcome:
            raise raised

        with component("agent-plugin") as made:
            agent = self._agent(run)
            with self.assertRaises(Err) as caught:
                agent().run(self._task(made))
            return caught.exception.value


class Imports(unittest.TestCase):
    def test_errors_of_the_host_are_raised_as_exceptions(self) -> None:
        with component("tool-plugin") as made:
            hit = made.named("LimitHit")("value_bytes_max", 5.0, 4.0)
            made.answers["keyvalue.set"] = Err(made.named("KeyvalueError_Limit")(hit))
            with self.assertRaises(LimitError) as caught:
                keyvalue.set("k", b"v")
            self.assertEqual(str(caught.exception), "limit `value_bytes_max` reached: 5 of 4")

    def test_what_a_world_lacks_is_refused_in_words(self) -> None:
        with component("tool-plugin"), self.assertRaisesRegex(FailedError, "has no `checks`"):
            checks.run("x")

    def test_arguments_that_do_not_fit_are_named(self) -> None:
        with component("tool-plugin"), self.assertRaisesRegex(TypeError, "`value` of `keyvalue.set` must be bytes"):
            keyvalue.set("k", "text")  # type: ignore[arg-type]

    def test_many_calls_give_answers_and_errors_in_their_order(self) -> None:
        from longhaul_sdk import tools

        with component("agent-plugin") as made:
            good = Ok(made.named("ToolResult")('{"a": 1}', False))
            cut = Ok(made.named("ToolResult")('{"a": ', True))
            bad = Err(made.named("ToolError_TimedOut")(7))
            lost = Err(made.named("ToolError_OutcomeUnknown")("it broke"))
            made.answers["tools.call-many"] = [good, bad, cut, lost]
            answers = tools.call_many([tools.ToolCall("t", "f", {"x": 1})] * 4)
        self.assertEqual(answers[0], tools.ToolResult({"a": 1}))
        self.assertIsInstance(answers[1], TimedOutError)
        self.assertEqual(answers[2], tools.ToolResult('{"a": ', True))
        self.assertIsInstance(answers[3], OutcomeUnknownError)

    def test_a_conversation_sends_each_format_and_part(self) -> None:
        from longhaul_sdk import Conversation, Image, Message, Role, ToolCallResult

        with component("evaluator-plugin") as made:
            usage = made.named("Usage")(3, 1, 0, 2, 1, None)
            reply = made.named("Reply")("hi", [], made.named("StopReason").END, usage, '{"a": 1}')
            made.answers["conversation.complete"] = reply
            conversation = Conversation("system")
            parts = ["a", Image("image/png", b"1"), ToolCallResult("1", {"b": 2})]
            conversation.push(Message(Role.TOOL, parts))  # type: ignore[arg-type]
            pushed = made.calls[-1][1][0]
            self.assertEqual(
                [type(part).__name__ for part in pushed.parts], ["Part_Text", "Part_Image", "Part_ToolResult"]
            )
            for wanted, case in [("text", "Text"), ("json", "Json"), ({"type": "object"}, "Schema")]:
                heard = conversation.complete(Options(format=wanted, temperature=1))  # type: ignore[arg-type]
                self.assertEqual((heard.usage.reasoning_tokens, heard.usage.cost_microdollars), (1, None))
                self.assertEqual(heard.extra, {"a": 1})
                sent = made.calls[-1][1][0]
                self.assertEqual(sent.extra, "{}")
                self.assertEqual(type(sent.format).__name__, f"ReplyFormat_{case}")
            with self.assertRaisesRegex(TypeError, "must be one of Text, Json, Schema, and is a text"):
                conversation.complete(Options(format="yaml"))  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
