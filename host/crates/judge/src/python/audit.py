"""Rewrites test files so that a pass can be told from a pretence of one, without running any of them.

Every test gets a random name. Beside it come twins: the same test with an expected value changed nearby, which must
fail. Canaries must fail too. Which name is which only the host knows. Only values that decide the test for certain are
changed: a literal that is compared, before anything that could end the test early. A test without such a value gets a
failing assertion instead, which still shows whether failures are reported. The text is edited in place by the positions
of the syntax tree, so that everything else stays as it was written.
"""

import ast
import os
import random
import re

_random = random.SystemRandom()

_WORDS = (
    "add apply batch build case check close copy count create draw drop edge edit empty even fetch fill find first flat "
    "format group guard index item join key last limit line list load lower map merge move name next odd open order "
    "page parse part pick place plain plan point pool pop push quick range read reset ring root round row save scan send "
    "set shape size skip slot small sort split start step store sum swap table tail total trim tuple unit update user "
    "value view walk wide width word wrap write zero"
).split()

# Twins of one audit: failing tests are written out in full, which takes time.
TWINS_MAX = 48

# Tests that are renamed and run again, chosen at random where there are more.
RENAMED_MAX = 400

_EXPECTED_SECOND = {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual",
                    "assertSetEqual", "assertMultiLineEqual", "assertSequenceEqual", "assertCountEqual"}

_OPPOSITES = dict(
    assertTrue="assertFalse", assertIn="assertNotIn", assertIs="assertIsNot", assertIsNone="assertIsNotNone",
    assertIsInstance="assertNotIsInstance", assertGreater="assertLessEqual", assertLess="assertGreaterEqual",
    assertRegex="assertNotRegex",
)
_OPPOSITES.update({value: key for key, value in list(_OPPOSITES.items())})

_ERRORS = ("ValueError", "TypeError", "KeyError", "IndexError", "ZeroDivisionError", "AttributeError")
_OTHER_ERRORS = ("UnicodeTranslateError", "BlockingIOError", "ChildProcessError", "TabError")


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
    """So many that guessing which of them is the test succeeds in one of some hundred tries or fewer."""
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


class _File:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = [line.encode() for line in text.splitlines(keepends=True)]
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.tree = None
        # Form feeds and the like end a line for `splitlines` alone.
        if self.tree is not None and len(self.lines) != len(re.findall(r"\n|\Z(?<!\n)", text.replace("\r\n", "\n"))):
            self.lines = [line.encode() for line in re.findall(r"[^\n]*\n|[^\n]+\Z", text)]
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

    def source_of(self, node):
        return self.span(node).decode(errors="replace")

    def span(self, node):
        lines = self.lines[node.lineno - 1:node.end_lineno]
        if not lines:
            return b""
        lines = [lines[0]] + lines[1:]
        lines[-1] = lines[-1][:node.end_col_offset]
        lines[0] = lines[0][node.col_offset:]
        return b"".join(lines)

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
    lines = list(test.file.lines[first:last])
    if not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    for (line, column, end_line, end_column), text in sorted(edits, reverse=True):
        line, end_line = line - 1 - first, end_line - 1 - first
        lines[line:end_line + 1] = [lines[line][:column] + text + lines[end_line][end_column:]] + [b""] * (end_line - line)
    return b"".join(lines)


def _rename(test, name):
    line = test.file.lines[test.node.lineno - 1]
    found = re.compile(rb"(async\s+)?def\s+").match(line, test.node.col_offset)
    return (test.node.lineno, found.end(), test.node.lineno, found.end() + len(test.node.name.encode())), name.encode()


def _twins(test, count, names):
    edits = _Edits(test).found()
    certain = [edit for edit in edits if edit[0] == "value"] or edits
    _random.shuffle(certain)
    for at, (_, span, news) in enumerate(certain[:count]):
        # Shared out as evenly as it goes.
        share = count // len(certain[:count]) + (at < count % len(certain[:count]))
        for new in news(share):
            yield _variant(test, (span, new), names, "twin")
    if not certain:
        yield _variant(test, _failing_line(test), names, "twin")


def _failing_line(test):
    body = test.node.body
    is_documented = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant)
    at = body[1] if is_documented and len(body) > 1 else body[0]
    line = min([at.lineno] + [decorator.lineno for decorator in getattr(at, "decorator_list", [])])
    left = _random.randrange(1 << 12)
    indent = test.file.lines[line - 1][:at.col_offset]
    text = b"assert %d == %d\n" % (left, left + _random.randrange(1, 5))
    return (line, 0, line, 0), indent + text


class _Edits:
    """Edits of a test that make it fail for certain where it passed."""

    def __init__(self, test):
        self._file, self._test, self._edits = test.file, test, []
        self._assigned, self._reads = {}, {}
        for node in ast.walk(test.node):
            if isinstance(node, ast.Name):
                self._reads[node.id] = self._reads.get(node.id, 0) + 1

    def found(self):
        self._block(self._test.node.body)
        return self._edits

    def _block(self, body):
        """False once what follows may not be reached."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(node, (ast.With, ast.AsyncWith)):
                texts = [self._file.source_of(item.context_expr) for item in node.items]
                if any(re.search(r"raises|Raises|warns|Warns|suppress|subTest|deprecated", text) for text in texts):
                    self._raises(node.items)
                    continue
                if not self._block(node.body):
                    return False
                continue
            if self._may_leave(node):
                return False
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._assigned[node.targets[0].id] = node.value
            elif isinstance(node, ast.Assert):
                self._assert(node.test)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._method(node.value)
            elif isinstance(node, ast.For) and isinstance(node.iter, (ast.List, ast.Tuple)) and node.iter.elts:
                self._block(node.body)
        return True

    def _may_leave(self, node):
        text = self._file.source_of(node)
        leaves = (ast.Return, ast.Break, ast.Continue)
        return any(isinstance(one, leaves) for one in ast.walk(node)) or bool(
            re.search(r"\bskip\w*\(|\bxfail\(|importorskip|skipTest|sys\.exit|\bexit\(", text))

    def _assert(self, test):
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            if isinstance(test.ops[0], ast.Eq) and (self._value(right) or self._value(left)):
                return
            if isinstance(test.ops[0], ast.Eq) and _is_exact(left) and _is_exact(right):
                return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            text = self._file.span(test.operand)
            self._edit("opposite", test, lambda _: [b"(" + text + b")"])
            return
        text = self._file.span(test)
        self._edit("opposite", test, lambda _: [b"not (" + text + b")"])

    def _method(self, call):
        if not isinstance(call.func, ast.Attribute) or any(isinstance(one, ast.Starred) for one in call.args):
            return
        name = call.func.attr
        if name in _EXPECTED_SECOND and len(call.args) >= 2:
            if not self._value(call.args[1]) and not self._value(call.args[0]) and name == "assertEqual":
                self._rename_method(call.func, b"assertNotEqual")
        elif name == "assertAlmostEqual" and len(call.args) == 2 and not call.keywords:
            self._value(call.args[1])
        elif name in _OPPOSITES:
            self._rename_method(call.func, _OPPOSITES[name].encode())
        elif name == "assertRaises" and call.args:
            self._other_error(call.args[0])

    def _rename_method(self, func, new):
        end = (func.end_lineno, func.end_col_offset)
        span = (end[0], end[1] - len(func.attr.encode()), *end)
        self._edits.append(("opposite", span, lambda _: [new]))

    def _raises(self, items):
        for item in items:
            call = item.context_expr
            if isinstance(call, ast.Call) and call.args and len(items) == 1:
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in ("raises", "assertRaises", "assertRaisesRegex"):
                    self._other_error(call.args[0])

    def _other_error(self, node):
        name = getattr(node, "id", None)
        if isinstance(node, (ast.Tuple, ast.List)) or name in ("Exception", "BaseException", "OSError", "ArithmeticError"):
            return
        choices = [error for error in _ERRORS if error != name] if name in _ERRORS else list(_OTHER_ERRORS)
        if name in ("LookupError", "RuntimeError", "UnicodeError", "SyntaxError"):
            choices = ["ZeroDivisionError", "BlockingIOError"]
        self._edit("opposite", node, lambda _: [_random.choice(choices).encode()])

    def _value(self, node):
        """Changes a value that is compared; whether that can be done."""
        if isinstance(node, ast.Name):
            return self._named(node.id)
        new = _near(self._file, node)
        if new is None:
            return False
        self._edit("value", node, new)
        return True

    def _named(self, name):
        # Read nowhere but where it is compared: it is no input.
        if name in self._assigned and self._reads.get(name) == 2:
            return self._value(self._assigned[name]) if not isinstance(self._assigned[name], ast.Name) else False
        column = self._parameter(name)
        if column and self._reads.get(name) == 1:
            for value in column:
                new = _near(self._file, value)
                if new is not None:
                    self._edit("value", value, new)
                    return True
        return False

    def _parameter(self, name):
        """The values of a parameter in `parametrize`."""
        for decorator in self._test.node.decorator_list:
            is_call = isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize"
            if not is_call or len(decorator.args) < 2 or not isinstance(decorator.args[1], (ast.List, ast.Tuple)):
                continue
            try:
                argnames = ast.literal_eval(decorator.args[0])
            except ValueError:
                continue
            argnames = [part.strip() for part in argnames.split(",")] if isinstance(argnames, str) else list(argnames)
            if name not in argnames:
                continue
            at, rows = argnames.index(name), list(decorator.args[1].elts)
            _random.shuffle(rows)
            if len(argnames) == 1:
                return rows
            return [row.elts[at] for row in rows if isinstance(row, (ast.Tuple, ast.List)) and len(row.elts) > at]
        return []

    def _edit(self, kind, node, new):
        span = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        self._edits.append((kind, span, new))


def _is_exact(node):
    return isinstance(node, ast.Constant)


def _near(file, node):
    """Makes so many texts of values that differ from that of `node`; none where that is not certain."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "approx":
        if len(node.args) != 1 or node.keywords:
            return None
        values, whole, argument = _near_values(node.args[0]), file.span(node), file.span(node.args[0])
        return values and (lambda count: [whole.replace(argument, text, 1) for text in values(count)])
    return _near_values(node)


def _near_values(node):
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return (lambda count: _chain(value, count)) if _changed(value, 1) is not None else None


def _chain(value, count):
    """Values of a walk on which the true one stands anywhere, so that neither the middle nor an end gives it away."""
    found, seen = [], {repr(value)}
    before = _random.randrange(count + 1)
    for steps, direction in ((before, -1), (count - before, 1)):
        at = value
        for _ in range(steps):
            for _ in range(20):
                new = _changed(at, direction)
                if repr(new) not in seen:
                    break
            else:
                continue
            at = new
            seen.add(repr(at))
            found.append(repr(at).encode())
    return found


def _changed(value, direction):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        if value != value or value in (float("inf"), float("-inf")):
            return None
        return value + direction * max(_random.randrange(1, 5), int(abs(value) // 50))
    if isinstance(value, str):
        return _changed_text(value)
    if isinstance(value, bytes):
        return _changed_text(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, (list, tuple)):
        at = [index for index, part in enumerate(value) if _changed(part, direction) is not None]
        if not at:
            return type(value)([*value, _random.randrange(10)])
        index = _random.choice(at)
        return type(value)([*value[:index], _changed(value[index], direction), *value[index + 1:]])
    if isinstance(value, dict):
        keys = [key for key in value if _changed(value[key], direction) is not None]
        if not keys:
            return {**value, "other": _random.randrange(10)}
        key = _random.choice(keys)
        return {**value, key: _changed(value[key], direction)}
    if isinstance(value, set):
        return {*value, _random.randrange(1 << 20)} if value else None
    return _random.randrange(10) if value is None else None


def _changed_text(text):
    if not text:
        return _random.choice("abcdefghijklmnopqrstuvwxyz")
    index = _random.randrange(len(text))
    letters = "0123456789" if text[index].isdigit() else "abcdefghijklmnopqrstuvwxyz"
    return text[:index] + _random.choice([letter for letter in letters if letter != text[index]]) + text[index + 1:]
