"""The function `judge` of the tool `python`: what a check is audited with, so that a pass is told from a pretence.

It answers twins of a check: the same source with an expected value changed nearby, or with an assertion that never
holds. The host asks for them in an instance that is granted nothing, and runs each in an instance of its own beside the
work: where one passes, it is the work that decides how a check ends. Nothing of the check is run here, and nothing of
the work is seen.
"""

import ast
import json
import re

from longhaul_twins import Edits, Source, changed, failing_assertion, is_source, shared_out

# Twins of one check. A work that decides by lot gets through all of them in one of some twenty tries or fewer.
TWINS_MAX = 8


def answer(arguments):
    """The twins of the check in the arguments, a JSON object of the host's, each with the line that was changed."""
    source = Source(json.loads(arguments)["source"])
    if source.tree is None:
        return json.dumps({"twins": []})
    chosen = list(shared_out(_edits(source), TWINS_MAX))
    twins = [(span[0], changed(source.lines, [(span, text)])) for span, text in chosen]
    twins = [(line, text) for line, text in twins if is_source(text)]
    if not twins:
        span, text = _failing_line(source)
        twins = [(span[0], changed(source.lines, [(span, text)]))]
    return json.dumps({"twins": [{"line": line, "source": text.decode()} for line, text in twins]})


def _edits(source):
    whole = Edits(source, source.tree)
    edits = whole.found()
    # A test that is skipped, or that nobody comes to, passes whatever it expects.
    if whole.reaches_its_end and not re.search(r"skip|xfail|expectedFailure|pytestmark", source.text, re.IGNORECASE):
        for test in _tests(source.tree):
            edits += Edits(source, test).found()
    return edits


def _tests(tree):
    """The tests that `longhaul_tests` would collect, as far as that is certain."""
    last = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for node in last.values():
        if not isinstance(node, ast.ClassDef):
            yield from filter(_is_test, [node])
        elif not node.decorator_list and (node.name.startswith("Test") or any(map(_is_case, node.bases))):
            methods = {part.name: part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
            yield from filter(_is_test, methods.values())


def _is_case(base):
    return getattr(base, "attr", getattr(base, "id", "")) == "TestCase"


def _is_test(node):
    known = all(getattr(getattr(one, "func", None), "attr", "") == "parametrize" for one in node.decorator_list)
    makes_no_generator = not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
    return known and makes_no_generator and node.name.startswith("test")


def _failing_line(source):
    """An assertion where the check surely comes: before the first statement that could end it, or at its end."""
    leaving = (node for node in source.tree.body if Edits(source, source.tree).may_leave(node))
    node = next(leaving, None)
    line = len(source.lines) + 1 if node is None else node.lineno
    return (line, 0, line, 0), failing_assertion()
