"""Edits of a test in Python that make it fail for certain where it passed.

Only values that decide the test are changed: a literal that is compared, before anything that could end the test early.
The text is edited in place by the positions of the syntax tree, so that everything else stays as it was written. Nothing
of a test is run here, and what the edits are good for is for others to say.
"""

import ast
import random
import re

_random = random.SystemRandom()

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

class Source:
    """A file of Python, its lines and its syntax tree; the tree of one that cannot be read is none."""

    def __init__(self, text):
        self.text = text
        self.lines = [line.encode() for line in text.splitlines(keepends=True)]
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.tree = None
        # Form feeds and the like end a line for `splitlines` alone.
        if self.tree is not None and len(self.lines) != len(re.findall(r"\n|\Z(?<!\n)", text.replace("\r\n", "\n"))):
            self.lines = [line.encode() for line in re.findall(r"[^\n]*\n|[^\n]+\Z", text)]

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


def changed(lines, edits):
    """Lines with edits: each a span, by lines counted from 1 and columns in bytes, and what comes in its place."""
    lines = [*lines, b""]
    if len(lines) > 1 and not lines[-2].endswith(b"\n"):
        lines[-2] += b"\n"
    for (line, column, end_line, end_column), text in sorted(edits, reverse=True):
        line, end_line = line - 1, end_line - 1
        lines[line:end_line + 1] = [lines[line][:column] + text + lines[end_line][end_column:]] + [b""] * (end_line - line)
    return b"".join(lines)


def failing_assertion():
    """An assertion that never holds, whatever the work does."""
    left = _random.randrange(1 << 12)
    return b"assert %d == %d\n" % (left, left + _random.randrange(1, 5))


def shared_out(edits, count):
    """At most so many edits, each a span and a text: those that change a value where there are such."""
    certain = [edit for edit in edits if edit[0] == "value"] or edits
    _random.shuffle(certain)
    for at, (_, span, news) in enumerate(certain[:count]):
        # As evenly as it goes.
        share = count // len(certain[:count]) + (at < count % len(certain[:count]))
        for new in news(share):
            yield span, new


class Edits:
    """What can be changed in a test: a function, or a whole module."""

    def __init__(self, file, node):
        self._file, self._node, self._edits = file, node, []
        self.reaches_its_end = False
        self._assigned, self._reads = {}, {}
        for node in ast.walk(node):
            if isinstance(node, ast.Name):
                self._reads[node.id] = self._reads.get(node.id, 0) + 1

    def found(self):
        self.reaches_its_end = self._block(self._node.body)
        return self._edits

    def _block(self, body):
        """False once what follows may not be reached."""
        for node in body:
            if isinstance(node, (ast.With, ast.AsyncWith)):
                texts = [self._file.source_of(item.context_expr) for item in node.items]
                if any(re.search(r"raises|Raises|warns|Warns|suppress|subTest|deprecated", text) for text in texts):
                    self._raises(node.items)
                    continue
                if not self._block(node.body):
                    return False
                continue
            if self.may_leave(node):
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

    def may_leave(self, node):
        """Whether what follows a statement may not be reached; what a function does is for those who call it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
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
        for decorator in getattr(self._node, "decorator_list", []):
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
