"""Rewrites test files so that a pass can be told from a pretence of one, without running any of them.

Every test gets a random name. Beside it come twins: the same test with an expected value changed nearby, which must
fail. Canaries must fail too. Which name is which only the host knows. What is changed is for `longhaul_twins` to find; a test
in which it finds nothing gets a failing assertion instead, which still shows whether failures are reported.
"""

import ast
import os
import random
import re

from longhaul_twins import Edits, Source, changed, failing_assertion, shared_out

_random = random.SystemRandom()

_WORDS = (
    "add apply batch build case check close copy count create draw drop edge edit empty even fetch fill find first flat "
    "format group guard index item join key last limit line list load lower map merge move name next odd open order "
    "page parse part pick place plain plan point pool pop push quick range read reset ring root round row save scan send "
    "set shape size skip slot small sort split start step store sum swap table tail total trim tuple unit update user "
    "value view walk wide width word wrap write zero"
).split()

# Twins of one audit: failing tests are written out in full, which takes time. Where there are more tests, so many of
# them, chosen at random, have one each.
TWINS_MAX = 48

# Tests that are renamed and run again, chosen at random where there are more.
RENAMED_MAX = 400


def prepared(plan, collected):
    """The record of a preparation: what is expected, and the files of the audit."""
    files = {path: _File(path, _read(path)) for path in plan["test_files"]}
    files = {path: file for path, file in files.items() if file.tree is not None}
    events = [event for event in collected["events"] if "id" in event]
    told = next((event for event in collected["events"] if "args" in event), {"args": []})
    broken = [event["broken"] for event in collected["events"] if "broken" in event]
    is_collected = collected["broken"] is None
    counts, skips = {}, set()
    skipping = _skipping_fixtures(list(files.values()) + [_File(path, _read(path)) for path in plan["conftests"]])
    for event in {event["id"]: event for event in events}.values():
        name = event["id"].split("[")[0]
        counts[name] = counts.get(name, 0) + 1
        if event["skips"] or any(fixture in skipping for fixture in event["fixtures"]):
            skips.add(name)
    by_tree = {}
    for path, file in files.items():
        for test in file.tests:
            by_tree[test.id] = test
    # By the file and the last name: a class may have its tests from another one.
    may_skip = {_short(test.id) for test in by_tree.values() if test.mentions_skip}
    skips.update(name for name in {*counts, *by_tree} if _short(name) in may_skip)
    if not is_collected:
        counts = {name: 1 for name in by_tree}
    for path in broken:
        counts.update({name: 1 for name in by_tree if name.startswith(path + "::") and name not in counts})
    base = {path: _File(path, text) for path, text in plan["base_files"].items()}
    audit = _audit(plan, files)
    audit.update(
        expected=counts, skips=sorted(skips), args=told["args"], is_collected=is_collected and not broken,
        base_count=sum(len(file.tests) for file in base.values() if file.tree is not None),
        count=sum(len(files[path].tests) for path in {*base, *plan["new_files"]} if path in files),
    )
    return audit


def watched(paths):
    """Literals of modules that must stay, by file and name; `repr` of each."""
    found = {}
    for path in paths:
        file = _File(path, _read(path))
        for node in file.tree.body if file.tree is not None else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                try:
                    value = ast.literal_eval(node.value)
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    continue
                # Tests fill lists and dictionaries that start empty. The order of a set is nobody's.
                if value not in ([], {}, None) and not isinstance(value, (set, frozenset)):
                    found.setdefault(path, {})[node.targets[0].id] = repr(value)
    return found


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _audit(plan, files):
    """Which tests are renamed, the files that come of it, and what each name is."""
    passed = set(plan["passed"])
    inherited = _inherited(plan, files)
    chosen = [test for file in files.values() for test in file.tests
              if (test.id in passed or _short(test.id) in inherited and not test.mentions_skip)
              and file.is_rewritable(test)]
    all_of_them = len(chosen)
    if len(chosen) > RENAMED_MAX:
        chosen = _random.sample(chosen, RENAMED_MAX)
    twins = _twins_each(len(chosen)) if plan["twins"] else 0
    with_twins = set(map(id, _random.sample(chosen, min(len(chosen), TWINS_MAX // twins)) if twins else ()))
    names, texts, imports = {}, {}, {}
    for path, file in files.items():
        own = [test for test in file.tests if any(test is one for one in chosen)]
        if own:
            texts[path] = file.rewritten(own, with_twins, twins, names)
            imports.update(file.imports)
    pinned = {os.path.splitext(os.path.basename(path))[0]: path for path in plan["kept"]
              if path.endswith(".py") and not os.path.basename(path).startswith("__")}
    modules = {}
    for name in imports:
        path = pinned.get(name.rpartition(".")[2])
        # Only where the name can be nothing else: a module of the tests that the work has no file for.
        if path and not _has_another(name, path):
            modules[name] = path
    return dict(files=texts, names=names, renamed=len(chosen), renamable=all_of_them, modules=modules,
                literals=watched([path for path in plan["kept"] if path.endswith(".py") and path not in texts]))


def _short(name):
    return name.split("::")[0], name.split("::")[-1]


def _inherited(plan, files):
    """Tests that passed in a class that has them from another one of the same file."""
    own = {test.id for file in files.values() for test in file.tests}
    return {_short(name) for name in plan["passed"] if name not in own}


def _twins_each(tests):
    """So many that who guesses the true value of each test is right once in 41 tries for one, in 225 for two."""
    for most, twins in ((1, 40), (2, 14), (4, 6), (8, 4), (TWINS_MAX // 2, 2)):
        if tests <= most:
            return twins
    return 1


def _has_another(name, path):
    parts = name.split(".")
    mine = os.path.splitext(path)[0].split("/")
    return len(parts) > 1 and mine[-len(parts):] != parts


def _skipping_fixtures(files):
    names = set()
    for file in files:
        for node in ast.walk(file.tree) if file.tree is not None else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and "skip" in file.source_of(node).lower():
                names.add(node.name)
    return names


class _Test:
    def __init__(self, file, node, owners):
        self.file, self.node, self.owners = file, node, owners
        self.id = "::".join([file.path, *(owner.name for owner in owners), node.name])
        first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
        self.lines = (first - 1, node.end_lineno)
        text = file.source_of(node) + "".join(map(file.source_of, node.decorator_list))
        text += "".join(file.source_of(decorator) for owner in owners for decorator in owner.decorator_list)
        self.mentions_skip = bool(re.search(r"skip|xfail|expectedFailure", text + file.marks, re.IGNORECASE))

    @property
    def is_method(self):
        return bool(self.owners)


class _File(Source):
    def __init__(self, path, text):
        super().__init__(text)
        self.path = path
        self.marks, self.tests, self.imports, self._bases = "", [], {}, set()
        if self.tree is not None:
            self._look()

    def _look(self):
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "pytestmark" for one in node.targets):
                self.marks += self.source_of(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.imports.update({alias.name: True for alias in node.names})
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imports[node.module] = True
            elif isinstance(node, ast.ClassDef):
                self._bases.update(getattr(base, "id", getattr(base, "attr", "")) for base in node.bases)
        self._collect(self.tree.body, [])

    def _collect(self, body, owners):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                self.tests.append(_Test(self, node, owners))
            elif isinstance(node, ast.ClassDef):
                self._collect(node.body, owners + [node])

    def is_rewritable(self, test):
        """Whether the lines of a test are its own, and nothing else in the file speaks of it."""
        first, last = test.lines
        is_alone = not self.lines[first][:test.node.col_offset].strip()
        if test.owners and test.owners[-1].name in self._bases:
            # Under another name nothing would override it.
            if sum(one.node.name == test.node.name for one in self.tests) > 1:
                return False
        body = test.node.body[0]
        is_block = body.lineno > test.node.lineno
        is_named = re.search(r"(?<!def )\b%s\b" % re.escape(test.node.name), self.text)
        return is_alone and is_block and not is_named and last > first

    def rewritten(self, tests, with_twins, twins, names):
        lines = list(self.lines)
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        for test in sorted(self.tests, key=lambda one: one.lines, reverse=True):
            first, last = test.lines
            if any(test is one for one in tests):
                variants = [_variant(test, None, names, "real")]
                if id(test) in with_twins:
                    variants += _twins(test, twins, names)
                _random.shuffle(variants)
                block = b"\n".join(variants)
            elif self.is_rewritable(test):
                # It is not audited this time.
                block = lines[first][:len(lines[first]) - len(lines[first].lstrip())] + b"pass\n"
            else:
                continue
            lines[first:last] = [block]
        is_of_unittest = all(test.is_method for test in tests)
        lines.append(_canaries(names, is_of_unittest))
        return b"".join(lines).decode()


def _name(names, kind, test=None):
    while True:
        name = "test_%s_%s_%04x" % (*_random.sample(_WORDS, 2), _random.randrange(1 << 16))
        if name not in names:
            names[name] = {"kind": kind, "of": test.id if test else ""}
            return name


def _canaries(names, is_of_unittest):
    """Tests that must fail, whatever the work does."""
    text = ""
    for _ in range(2):
        name, left = _name(names, "twin"), _random.randrange(1 << 12)
        right = left + _random.randrange(1, 5)
        if is_of_unittest:
            kind = "Test%s%04x" % (_random.choice(_WORDS).title(), _random.randrange(1 << 16))
            text += "\n\nclass %s(__import__('unittest').TestCase):\n    def %s(self):\n" % (kind, name)
            text += "        self.assertEqual(%d, %d)\n" % (left, right)
        else:
            text += "\n\ndef %s():\n    assert %d == %d\n" % (name, left, right)
    return text.encode()


def _variant(test, edit, names, kind):
    """The lines of a test under another name, with one edit: a span and what comes in its place."""
    edits = [_rename(test, _name(names, kind, test))]
    if edit:
        edits.append(edit)
    first, last = test.lines
    edits = [((line - first, column, end - first, to), text) for (line, column, end, to), text in edits]
    return changed(test.file.lines[first:last], edits)


def _rename(test, name):
    line = test.file.lines[test.node.lineno - 1]
    found = re.compile(rb"(async\s+)?def\s+").match(line, test.node.col_offset)
    return (test.node.lineno, found.end(), test.node.lineno, found.end() + len(test.node.name.encode())), name.encode()


def _twins(test, count, names):
    edits = Edits(test.file, test.node).found()
    for edit in shared_out(edits, count) if edits else [_failing_line(test)]:
        yield _variant(test, edit, names, "twin")


def _failing_line(test):
    body = test.node.body
    is_documented = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant)
    at = body[1] if is_documented and len(body) > 1 else body[0]
    line = min([at.lineno] + [decorator.lineno for decorator in getattr(at, "decorator_list", [])])
    indent = test.file.lines[line - 1][:at.col_offset]
    return (line, 0, line, 0), indent + failing_assertion()
