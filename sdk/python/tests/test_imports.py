"""Each import reaches the host and comes back."""

import dataclasses
import unittest

from longhaul_sdk import (
    Conversation,
    DeniedError,
    Graph,
    InvalidError,
    LimitError,
    Options,
    Outcome,
    StopReason,
    Task,
    Reply,
    UnknownAgentError,
    UnknownStepError,
    _interpreter,
    artifact,
    checks,
    clock,
    decisions,
    delegate,
    graph,
    keyvalue,
    log,
    progress,
    recall,
    timer,
    tools,
)
from longhaul_sdk.testing import FakeTool, Host


@dataclasses.dataclass
class Answer:
    value: int


class Imports(unittest.TestCase):
    def test_everything_answers(self) -> None:
        host = Host(
            tools=[FakeTool("web", {"get": lambda url: {"got": url}})],
            checks={"builds": True},
            agents={"helper": lambda task: Outcome(task.instruction, "done")},
            now_ms=5,
        )
        with host:
            self.assertEqual(tools.call("web", "get", url="u"), {"got": "u"})
            self.assertEqual([tool.id for tool in tools.available()], ["web"])
            answers = tools.call_many([tools.ToolCall("web", "get", {"url": "u"}), tools.ToolCall("web", "put")])
            self.assertEqual(answers[0], tools.ToolResult({"got": "u"}))
            self.assertIsInstance(answers[1], InvalidError)
            self.assertTrue(checks.run(checks.available()[0].name).passed)
            self.assertEqual(delegate.run("helper", Task("t", "x")).output, "x")
            many = delegate.run_many([delegate.Assignment("nobody", Task("t", "x"))])
            self.assertIsInstance(many[0], UnknownAgentError)
            recall.remember("k", {"a": 1})
            self.assertEqual((recall.fetch("k"), recall.fetch("none")), ({"a": 1}, None))
            self.assertEqual([hit.key for hit in recall.search("a")], ["k"])
            self.assertEqual(decisions.record(decisions.Decision("c", "d", "r")), "d-1")
            [found] = decisions.find("d")
            self.assertEqual((found.id, found.decision.outcome), ("d-1", decisions.DecisionOutcome.OPEN))
            progress.add("built", "ok", ["a.py"])
            self.assertIsNone(artifact.load())
            artifact.save({"at": 1}, "half")
            self.assertEqual(artifact.load(), artifact.SavedArtifact(1, {"at": 1}, "half"))
            for number in range(10):
                keyvalue.set(f"k{number}", b"v")
            keyvalue.set("other", b"")
            self.assertEqual(list(keyvalue.keys("k")), [f"k{number}" for number in range(10)])
            keyvalue.delete("k0")
            self.assertEqual((keyvalue.exists("k0"), keyvalue.get("k1")), (False, b"v"))
            timer.sleep(10)
            self.assertEqual((clock.now_ms(), host.slept_ms), (15, 10))
            log.warn("careful")
        self.assertEqual(host.log, [("warn", "careful")])
        self.assertEqual(host.progress, [("built", "ok", ["a.py"])])

    def test_a_graph_keeps_its_steps_and_runs_as_it_is_scripted(self) -> None:
        failure = graph.GraphFailure("NameError", "name 'rowz' is not defined", 1)
        diagnosis = graph.GraphDiagnosis("sum", failure, [], "sum", "a typo")
        host = Host(
            graph_runs=[graph.GraphReplay(["load", "sum"], failed=["sum"])],
            graph_diagnoses={"sum": diagnosis},
            graph_patches={"sum": graph.GraphPatch("sum", "total = sum(rows)", "a typo", 1)},
        )
        with host:
            figures = Graph("figures")
            with self.assertRaisesRegex(InvalidError, "there is no graph `figures`"):
                figures.run()
            self.assertEqual(figures.add("load", "rows = [1]").stale, ["load"])
            figures.add("sum", "total = sum(rowz)")
            with self.assertRaises(InvalidError):
                figures.add("sum", "")
            with self.assertRaises(UnknownStepError):
                figures.change("gone", "")
            self.assertEqual(figures.run().failed, ["sum"])
            self.assertEqual(figures.diagnose().cause, "sum")
            self.assertEqual(figures.patch("sum").tries, 1)
            self.assertEqual([step.source for step in figures.show()], ["rows = [1]", "total = sum(rows)"])
            figures.change("load", "rows = [2]")
            self.assertEqual(figures.replay("load").ran, ["load", "sum"])
            self.assertIn('"load"', figures.export(graph.GraphFormat.DOT))
            figures.remove("sum")
            self.assertEqual(figures.stale(), ["load"])

    def test_an_error_says_its_numbers(self) -> None:
        self.assertEqual(str(LimitError("tokens_max", 2_000_001, 2e6)), "limit `tokens_max` reached: 2000001 of 2000000")
        self.assertEqual(str(DeniedError("no", "add it")), "no; to allow it, add it")

    def test_without_a_host_it_is_said_what_to_do(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "`clock.now_ms` is only there in a component; in a unit test write"):
            clock.now_ms()


class Conversations(unittest.TestCase):
    def test_a_reply_is_a_text_or_a_value(self) -> None:
        with Host(replies=["hi", {"value": 1}, {"value": 2}, [1, 2], {"any": 1}]) as host:
            conversation = Conversation("system", Options(temperature=0.5))
            self.assertEqual(conversation.text("hello"), "hi")
            self.assertEqual(conversation.structured("one", Answer), Answer(1))
            self.assertEqual(conversation.structured("dict", dict[str, int]), {"value": 2})
            self.assertEqual(conversation.structured("list", list[int]), [1, 2])
            self.assertEqual(conversation.json("any", {"type": "object"}), {"any": 1})
        self.assertEqual({request.options.temperature for request in host.requests}, {0.5})
        self.assertEqual(host.requests[1].options.format["required"], ["value"])  # type: ignore[index]

    def test_a_reply_that_does_not_fit_is_asked_for_again(self) -> None:
        with Host(replies=[{"value": "x"}, {"value": 3}]) as host:
            self.assertEqual(Conversation("").structured("p", Answer), Answer(3))
            self.assertIn("`value` must be a whole number, and is a text", host.requests[1].last)
        with Host(replies=["no", "no"]), self.assertRaisesRegex(InvalidError, "the reply cannot be read"):
            Conversation("").structured("p", Answer)
        with Host(replies=["no"]), self.assertRaises(InvalidError):
            Conversation("").structured("p", Answer, repairs_max=0)

    def test_a_reply_that_was_cut_is_called_so(self) -> None:
        with Host(replies=[Reply('{"value": ', reason=StopReason.LENGTH)]):
            with self.assertRaisesRegex(InvalidError, "cut at the limit of output tokens"):
                Conversation("").structured("p", Answer, repairs_max=0)

    def test_a_reset_keeps_what_is_pinned(self) -> None:
        with Host(replies=["a", "b"]) as host:
            conversation = Conversation("")
            conversation.user("the task", pinned=True)
            conversation.text("x")
            conversation.reset("so far")
            conversation.complete()
            self.assertEqual([message.parts for message in host.requests[-1].messages], [["the task"], ["so far"]])
            self.assertEqual(conversation.usage().resets, 1)


class AdviceTest(unittest.TestCase):
    def test_a_module_that_is_missing_is_named_with_what_to_do(self) -> None:
        try:
            import no_such_package.part  # type: ignore[import-not-found]
        except ModuleNotFoundError as error:
            told = _interpreter.advice(error)
        self.assertIn("`no_such_package` is not in the component", told)
        self.assertIn("`paths` under [build]", told)
        told = _interpreter.advice(ModuleNotFoundError("No module named 'ssl'", name="ssl"))
        self.assertIn("`import ssl` at the top", told)
        try:
            b"x".decode("no-such-codec")
        except LookupError as error:
            self.assertIn("`import encodings.no_such_codec`", _interpreter.advice(error))
        self.assertEqual(_interpreter.advice(KeyError("x")), "")

    def test_every_codec_of_python_is_taken_into_a_component(self) -> None:
        codecs = _interpreter._codecs()
        for name in ["idna", "ascii", "latin_1", "cp1252", "utf_16", "koi8_r", "shift_jis", "gb18030", "rot_13"]:
            self.assertIn(f"encodings.{name}", codecs)
        self.assertNotIn("encodings.mbcs", codecs)
