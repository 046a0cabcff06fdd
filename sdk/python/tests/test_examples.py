"""The five examples do what they say, in plain Python."""

import unittest
from typing import Any

from longhaul_sdk import (
    Criterion,
    Entry,
    Evidence,
    FailedError,
    Goal,
    Image,
    InvalidArgumentsError,
    InvalidError,
    LimitError,
    Mark,
    MemoryContext,
    Outcome,
    PlanStepResult,
    RefusedError,
    Rubric,
    Subject,
    Task,
    UnclearError,
    UnknownFunctionError,
)
from longhaul_sdk.testing import FakeTool, Host

from .contract import example


class Notes(unittest.TestCase):
    def setUp(self) -> None:
        self.host = self.enterContext(Host())
        self.notes = example("tool").Notes

    def test_texts_are_counted(self) -> None:
        for text, counts in [("", (0, 0, 0)), ("a b\n c", (3, 2, 6)), ("ä 😀\n", (2, 2, 4)), ("\n", (0, 2, 1))]:
            got = self.host.call(self.notes, "count", {"text": text})
            self.assertEqual(tuple(got.values()), counts, repr(text))

    def test_notes_are_kept(self) -> None:
        self.assertEqual(self.host.call(self.notes, "save", {"name": "ä", "text": "t"}), {"saved": "ä"})
        self.assertEqual(self.host.keyvalue, {"note/ä": b"t"})
        self.assertEqual(self.host.call(self.notes, "read", {"name": "ä"}), {"text": "t"})
        with self.assertRaisesRegex(FailedError, "there is no note `b`"):
            self.host.call(self.notes, "read", {"name": "b"})
        for name in ("", "x" * 101):
            with self.assertRaises(InvalidArgumentsError):
                self.host.call(self.notes, "read", {"name": name})
        self.host.call(self.notes, "save", {"name": "x" * 100, "text": ""})
        with self.assertRaises(UnknownFunctionError):
            self.host.call(self.notes, "drop", {})


class Reporter(unittest.TestCase):
    USE = {"action": "tool", "tool": "notes", "function": "count", "arguments": {"text": "a b"}}
    FINISH = {"action": "finish", "output": {"n": 2}, "summary": "counted"}

    def test_tools_are_called_until_it_is_finished(self) -> None:
        host, outcome = self._run([self.USE, self.FINISH])
        self.assertEqual(outcome, Outcome({"n": 2}, "counted"))
        self.assertEqual(host.requests[0].last, "Task:\nCount.")
        self.assertEqual(host.requests[1].last, 'Observation (notes.count): {"words": 2, "lines": 1, "characters": 3}')
        self.assertIn("notes: Counts words", host.requests[0].system)
        schema: Any = host.requests[0].options.format
        self.assertEqual(schema["properties"]["action"], {"type": "string", "enum": ["tool", "finish"]})
        self.assertEqual(schema["properties"]["tool"]["enum"], ["notes"])
        # Providers refuse a schema whose top is a choice.
        self.assertEqual((schema["type"], schema["required"]), ("object", ["action"]))

    def test_errors_of_tools_are_observations(self) -> None:
        host, outcome = self._run([{**self.USE, "arguments": {}}, {**self.USE, "tool": "web"}, self.FINISH])
        self.assertEqual(outcome.summary, "counted")
        self.assertEqual(host.requests[1].last, "Tool error (notes.count): invalid arguments: `text` is missing")
        self.assertEqual(host.requests[2].last, "Tool error (web.count): there is no tool `web`")

    def test_a_reply_that_cannot_be_read_gets_one_repair(self) -> None:
        for wrong, said in [
            ("sorry", "Expecting value"),
            ({"action": "dance"}, '`action` must be "tool" or "finish"'),
            ({**self.USE, "arguments": "x"}, "`arguments` must be an object, and is a text"),
            ([1], "must be an object with `action`, and is a list"),
        ]:
            with self.subTest(said):
                host, outcome = self._run([wrong, self.USE, wrong, self.FINISH])
                self.assertEqual(outcome.summary, "counted")
                self.assertIn(said, host.requests[1].last)
                with self.assertRaisesRegex(InvalidError, said):
                    self._run([wrong, wrong])

    def test_prose_around_the_answer_does_no_harm(self) -> None:
        _, outcome = self._run(['Well:\n```json\n{"action": "finish", "output": 1, "summary": "s"}\n```'])
        self.assertEqual(outcome, Outcome(1, "s"))

    def test_the_steps_are_capped(self) -> None:
        for settings, steps in [({}, 8), ({"steps_max": 2}, 2)]:
            with self.assertRaises(LimitError) as caught:
                self._run([self.USE] * 20, settings)
            hit = caught.exception
            self.assertEqual((hit.name, hit.used, hit.max), ("steps_max", steps, steps))

    def test_settings_are_checked(self) -> None:
        host, _ = self._run([self.FINISH], {"prompt": "Be brief."})
        self.assertTrue(host.requests[0].system.startswith("Be brief."))
        for settings, text in [({"steps_max": 0}, "`settings.steps_max` must be at least 1"), ({"step": 1}, "known: prompt")]:
            with self.assertRaisesRegex(InvalidError, text):
                self._run([self.FINISH], settings)

    def test_errors_of_the_model_end_it(self) -> None:
        with self.assertRaises(RefusedError):
            self._run([self.USE, RefusedError("no")])

    def test_long_observations_are_cut_and_without_tools_it_can_only_finish(self) -> None:
        host = Host(replies=[{**self.USE, "tool": "web"}, self.FINISH], tools=[FakeTool("web", {"count": lambda text: "x" * 9_000})])
        with host:
            host.run(example("agent").Reporter, "run", Task("t", "Do."))
        self.assertIn("… (5002 more characters)", host.requests[1].last)
        with Host(replies=[self.FINISH]) as host:
            host.run(example("agent").Reporter, "run", Task("t", "Do."))
        self.assertEqual(host.requests[0].options.format["properties"]["action"]["enum"], ["finish"])  # type: ignore[index]

    def test_what_is_cut_can_be_read_again_where_the_host_keeps_it(self) -> None:
        kept = FakeTool("context", {"read_again": lambda id: f"the rest of {id}"})
        long = FakeTool("web", {"count": lambda text: "x" * 9_000})
        with Host(replies=[{**self.USE, "tool": "web"}, self.FINISH], tools=[long, kept]) as host:
            host.run(example("agent").Reporter, "run", Task("t", "Do."))
        self.assertRegex(host.requests[1].last, r"5002 more characters; to read all of it, call context.read_again with \{\"id\": \"call-\d+\"\}\)$")

    def test_a_picture_is_shown_and_its_bytes_are_left_out_of_the_words(self) -> None:
        for url, shown in [("data:image/png;base64,AQID", True), ("data:image/png;base64,AQI", False), ("data:text/html;base64,AQID", False)]:
            picture = FakeTool("web", {"count": lambda text, url=url: {"data_url": url, "width": 3}})
            with Host(replies=[{**self.USE, "tool": "web"}, self.FINISH], tools=[picture]) as host:
                host.run(example("agent").Reporter, "run", Task("t", "Do."))
            words, *pictures = host.requests[1].messages[-1].parts
            self.assertEqual(pictures, [Image("image/png", b"\x01\x02\x03")] if shown else [])
            self.assertEqual("[image image/png, 3 bytes]" in words and url not in words, shown)

    def _run(self, replies: list[Any], settings: dict[str, Any] | None = None) -> tuple[Host, Outcome]:
        with Host(replies=replies, tools=[example("tool").Notes]) as host:
            return host, host.run(example("agent").Reporter, "run", Task("t", " Count. ", settings=settings or {}))


class Outline(unittest.TestCase):
    def setUp(self) -> None:
        self.outline = example("planner").Outline()

    def test_lines_become_steps(self) -> None:
        plan = self.outline.plan(Goal("Do:\n- a: first\n  - b: " + "ä" * 90 + "\n-c: no\n- : no\n- d:\n- e f: no\r\n- g: last\r\n"))
        self.assertEqual([step.id for step in plan.steps], ["a", "b", "g"])
        first, second = plan.steps[:2]
        self.assertEqual((first.title, first.instruction, first.criteria), ("first", "first", [Criterion("does-it", "first")]))
        self.assertEqual((first.category, first.priority, first.checks, first.depends_on), ("functional", 5, [], []))
        self.assertEqual((len(second.title), len(second.instruction)), (80, 90))

    def test_a_goal_without_steps_is_a_question(self) -> None:
        with self.assertRaisesRegex(UnclearError, "which steps are there"):
            self.outline.plan(Goal("Do something."))

    def test_what_passed_is_not_planned_again(self) -> None:
        goal = Goal("- a: x\n- b: y")
        plan = self.outline.replan(goal, self.outline.plan(goal), [PlanStepResult("a", True), PlanStepResult("b", False)])
        self.assertEqual([step.id for step in plan.steps], ["b"])

    def test_the_answer_has_every_output(self) -> None:
        results = [PlanStepResult("a", True, Outcome({"x": 1}, "s")), PlanStepResult("b", False, Outcome("t", "s")), PlanStepResult("c", False)]
        synthesis = self.outline.synthesize(Goal(""), results)
        self.assertEqual(synthesis.answer, {"a": {"x": 1}, "b": "t"})
        self.assertEqual((synthesis.confidence, synthesis.unknowns), (1 / 3, ["b", "c"]))
        self.assertEqual(self.outline.synthesize(Goal(""), []).confidence, 0)


class Mentions(unittest.TestCase):
    def test_what_is_quoted_must_occur(self) -> None:
        subject = Subject("i", {"text": "hello 'w'"}, [Evidence("f", "wörld\nx")])
        for text, mark, reason in [
            ('says "hello"', Mark.PASS, "all that it names is there"),
            ('has "hello" and "wörld"', Mark.PASS, "all that it names is there"),
            ('has "hello" and "Hello" and "a\n b"', Mark.FAIL, 'missing: "Hello", "a b"'),
        ]:
            verdict = self._judge(subject, [Criterion("c", text)])
            self.assertEqual((verdict.judgements[0].mark, verdict.judgements[0].reason), (mark, reason))
            self.assertEqual([issue.text for issue in verdict.issues], [] if mark is Mark.PASS else [reason])

    def test_without_quotes_the_check_decides(self) -> None:
        criteria = [Criterion("good", "x"), Criterion("bad", "x"), Criterion("none", 'x ""')]
        verdict = self._judge(Subject("i", "o"), criteria, {"good": True, "bad": False})
        self.assertEqual([one.mark for one in verdict.judgements], [Mark.PASS, Mark.FAIL, Mark.FAIL])
        self.assertEqual(verdict.judgements[1].reason, "the check `bad` failed with exit code 1")
        self.assertIn("there is no check `none`", verdict.judgements[2].reason)

    def test_nothing_cannot_be_judged(self) -> None:
        with self.assertRaisesRegex(FailedError, "a rubric without criteria cannot be judged"):
            self._judge(Subject("i", "o"), [])

    def _judge(self, subject: Subject, criteria: list[Criterion], checks: dict[str, bool] | None = None) -> Any:
        with Host(checks=checks or {}) as host:
            return host.run(example("evaluator").Mentions, "judge", subject, Rubric(criteria))


class Shelf(unittest.TestCase):
    def setUp(self) -> None:
        self.host = self.enterContext(Host(now_ms=1_000))
        self.shelf = example("memory").Shelf

    def test_entries_are_kept_and_given_back(self) -> None:
        entry = Entry("k/ä\0", {"a": [1, None]}, ["t"], 2_000.0)
        self._put("n", entry)
        self.assertEqual(self._get("n", "k/ä\0"), entry)
        self._put("n", Entry("k/ä\0", 2))
        self.assertEqual(self._get("n", "k/ä\0"), Entry("k/ä\0", 2))
        self.assertIsNone(self._get("n", "other"))
        with self.assertRaisesRegex(InvalidError, "the key is empty"):
            self._put("n", Entry("", 1))

    def test_namespaces_do_not_see_each_other(self) -> None:
        places = [("a", "b/c"), ("a/b", "c"), ("", "a/b/c"), ("1", "/a"), ("1/", "a"), ("a\0", "c"), ("a", "\0c")]
        for number, (namespace, key) in enumerate(places):
            self._put(namespace, Entry(key, number))
        self.assertEqual([self._get(*place).value for place in places], list(range(len(places))))
        self.assertEqual(self._list("a/b"), ["c"])
        self.assertEqual([hit.entry.key for hit in self._run("search", "a/b", "c", 9)], ["c"])

    def test_keys_are_listed_in_order_and_in_pages(self) -> None:
        for number in range(9, -1, -1):
            self._put("n", Entry(f"k{number}", number))
        self._put("n", Entry("😀", 0))
        self._put("n", Entry("\uffff", 0))
        self.assertEqual(self._list("n"), [f"k{number}" for number in range(10)] + ["\uffff", "😀"])
        page = self._run("list", "n", "k", "k3", 4)
        self.assertEqual((page.keys, page.cursor), (["k4", "k5", "k6", "k7"], "k7"))
        page = self._run("list", "n", "k", page.cursor, 4)
        self.assertEqual((page.keys, page.cursor), (["k8", "k9"], None))
        self.assertEqual(self._run("list", "n", "k", "k9", 4).keys, [])
        self.assertEqual(self._run("list", "n", "", "k3", 0).cursor, "k3")

    def test_a_backend_has_the_settings_of_its_call(self) -> None:
        class Configured(self.shelf):  # type: ignore[name-defined, misc]
            def get(self, namespace: str, key: str) -> Entry:
                return Entry(key, self.context.settings)

        settings = MemoryContext({"size": 3})
        self.assertEqual(self.host.run(Configured, "get", "n", "k", settings).value, {"size": 3})
        self.assertEqual(self.host.run(Configured, "get", "n", "k").value, {})

    def test_the_best_hits_come_first(self) -> None:
        self._put("n", Entry("one", "Hello big WORLD"))
        self._put("n", Entry("two", {"x": "hello"}, ["World"]))
        self._put("n", Entry("hello", 1))
        self._put("n", Entry("none", 1))
        hits = self._run("search", "n", "hello WORLD hello", 9)
        self.assertEqual([(hit.entry.key, hit.score) for hit in hits], [("one", 1.0), ("two", 1.0), ("hello", 0.5)])
        self.assertEqual(len(self._run("search", "n", "hello", 2)), 2)
        self.assertEqual(self._run("search", "n", "  ", 9) + self._run("search", "n", "hello", 0), [])

    def test_expired_entries_are_gone(self) -> None:
        for key in "abcd":
            self._put("n", Entry(key, "x", [], 1_500))
        self.host.now_ms = 1_499
        self.assertEqual(len(self._list("n")), 4)
        self.host.now_ms = 1_500
        self.assertIsNone(self._get("n", "a"))
        self.assertFalse(self._run("delete", "n", "b"))
        self.assertEqual(self._run("search", "n", "x", 9) + self._list("n"), [])
        self.assertEqual(self.host.keyvalue, {})
        with self.assertRaisesRegex(InvalidError, "expires-at-ms"):
            self._put("n", Entry("k", 1, [], float("nan")))

    def test_deleting_says_whether_there_was_something(self) -> None:
        self._put("n", Entry("a", 1))
        self.assertEqual([self._run("delete", "n", "a"), self._run("delete", "n", "a")], [True, False])

    def _run(self, name: str, *arguments: Any) -> Any:
        return self.host.run(self.shelf, name, *arguments)

    def _put(self, namespace: str, entry: Entry) -> None:
        self._run("put", namespace, entry)

    def _get(self, namespace: str, key: str) -> Any:
        return self._run("get", namespace, key)

    def _list(self, namespace: str) -> Any:
        return self._run("list", namespace, "", None, 100).keys
