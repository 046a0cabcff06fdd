"""Edits of a test in Python that make it fail for certain where it passed.

Only values that decide the test are changed, before anything that could end the test early: a literal that is compared;
where none is, either side of the comparison, for which a value that differs is computed when the test runs. The text is
edited in place by the positions of the syntax tree, so that everything else stays as it was written. Nothing of a test
is run here, and what the edits are good for is for others to say.
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

# What makes values that are equal to more than themselves: those may be equal to a value that was changed nearby, these
# to any.
_TOLERANT = re.compile(r"approx|isclose")
_MATCHERS = re.compile(r"\bANY\b|\bdirty_equals\b|\bhamcrest\b|\b__eq__\b|[Mm]atcher|\bAnything\b")

# Calls of helpers that are followed into their functions, one within the other.
HELPERS_DEEP = 2


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
        self.has_matchers = bool(_MATCHERS.search(text))
        self.is_exact = not self.has_matchers and not _TOLERANT.search(text)

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


def is_source(text):
    """Whether lines can be read, at whatever depth they begin."""
    try:
        ast.parse(b"if 1:\n" + text if text[:1] in (b" ", b"\t") else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def failing_assertion():
    """An assertion that never holds, whatever the work does."""
    left = _random.randrange(1 << 12)
    return b"assert %d == %d\n" % (left, left + _random.randrange(1, 5))


def shared_out(edits, count):
    """At most so many edits, each a span and a text: those that change a value where there are such."""
    certain = [edit for edit in edits if edit[0] in ("value", "other")] or list(edits)
    _random.shuffle(certain)
    certain = certain[:count]
    # A literal has as many twins as there are, so that a guess is seldom right.
    wide = [at for at, edit in enumerate(certain) if edit[0] == "value"] or list(range(len(certain)))
    share, left = divmod(count - len(certain), len(wide) or 1)
    for at, (_, span, news) in enumerate(certain):
        more = share + (wide.index(at) < left) if at in wide else 0
        for new in news(1 + more):
            yield span, new


class Edits:
    """What can be changed in a test: a function, or a whole module."""

    def __init__(self, file, node, deep=0):
        self._file, self._node, self._edits, self._deep = file, node, [], deep
        self.reaches_its_end = False
        self._assigned, self._reads, self._is_within = {}, {}, False
        for one in ast.walk(node):
            if isinstance(one, ast.Name):
                self._reads[one.id] = self._reads.get(one.id, 0) + 1

    def found(self):
        self.reaches_its_end = self._block(self._node.body)
        return self._edits

    def _block(self, body):
        """False once what follows may not be reached."""
        for node in body:
            if isinstance(node, (ast.With, ast.AsyncWith)):
                texts = [self._file.source_of(item.context_expr) for item in node.items]
                if any(re.search(r"raises|Raises|warns|Warns|suppress|deprecated", text) for text in texts):
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
                self._helper(node)
            elif isinstance(node, ast.For) and isinstance(node.iter, (ast.List, ast.Tuple)) and node.iter.elts:
                self._block(node.body)
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                self._loop(node)
        return True

    def _loop(self, node):
        """Of a loop that may have nothing to go through: there a twin fails behind it."""
        found, indent = self._within(lambda: self._block(node.body)), self._indent_of(node)
        if indent is None:
            return
        ran = b"ran_%04x" % _random.randrange(1 << 16)
        first = min([node.body[0].lineno] + [one.lineno for one in getattr(node.body[0], "decorator_list", [])])
        if first > node.lineno and self._indent_of(node.body[0]) is not None:
            mark = (first, 0, first, 0), self._indent_of(node.body[0]) + ran + b" = True\n"
        else:
            column = node.body[0].col_offset
            mark = (first, column, first, column), ran + b" = True; "
        before, after = indent + ran + b" = False\n", b"\n" + indent + b"assert " + ran
        for kind, span, news in found:
            def edited(text, span=span):
                return before + self._changed(node, [(span, text), mark]) + after
            self._edits.append((kind, self._lines_of(node), _each(news, edited)))

    def _within(self, look):
        """The edits of a part that stands for itself: no value is changed outside of it."""
        outside = self._edits, self._assigned, self._is_within
        self._edits, self._assigned, self._is_within = [], {}, True
        look()
        found, (self._edits, self._assigned, self._is_within) = self._edits, outside
        return found

    def _helper(self, statement):
        """Of a function of the same file that the test calls: the twin has one of its own."""
        call, indent = statement.value, self._indent_of(statement)
        helper, itself = self._function(call.func)
        if helper is None or indent is None or self._deep == HELPERS_DEEP or not _can_be_moved(helper):
            return
        if any(isinstance(one, ast.GeneratorExp) for one in call.args):
            return
        name = b"check_%04x" % _random.randrange(1 << 16)
        start = self._file.lines[helper.lineno - 1].index(b"def", helper.col_offset) + 3
        start += self._file.lines[helper.lineno - 1][start:].index(helper.name.encode())
        renamed = (helper.lineno, start, helper.lineno, start + len(helper.name.encode())), name
        func = call.func
        after = call.func.end_lineno, call.func.end_col_offset
        called = [((func.lineno, func.col_offset, *after), name)]
        if itself:
            at = self._file.lines[after[0] - 1].find(b"(", after[1])
            if at < 0:
                return
            more = b", " if call.args or call.keywords else b""
            called.append(((after[0], at + 1, after[0], at + 1), itself.encode() + more))
        called = self._changed(statement, called)
        for kind, span, news in Edits(self._file, helper, self._deep + 1).found():
            def edited(text, span=span):
                own = self._changed(helper, [(span, text), renamed]).split(b"\n")
                own = [line[min(helper.col_offset, len(line) - len(line.lstrip())):] for line in own]
                return b"\n".join(indent + line if line else line for line in own) + b"\n" + called
            self._edits.append((kind, self._lines_of(statement), _each(news, edited)))

    def _function(self, func):
        """The function of this file that is called, and by which name its first parameter is known here."""
        tree = self._file.tree
        if isinstance(func, ast.Name):
            return None if func.id in self._own_names() else _only(tree.body, func.id), None
        parameters = getattr(getattr(self._node, "args", None), "args", [])
        if isinstance(func, ast.Attribute) and parameters and getattr(func.value, "id", None) == parameters[0].arg:
            owners = [one for one in tree.body if isinstance(one, ast.ClassDef) and self._node in one.body]
            if owners:
                return _only(owners[0].body, func.attr), parameters[0].arg
        return None, None

    def _own_names(self):
        """Names that a test gives a meaning of its own."""
        if isinstance(self._node, ast.Module):
            return set()
        parts = list(ast.walk(self._node))[1:]
        return {getattr(one, "arg", None) or getattr(one, "name", None) or one.id for one in parts
                if isinstance(one, (ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias))
                or isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}

    def _indent_of(self, node):
        """What stands before a statement, if that and what comes after it is no other statement."""
        indent = self._file.lines[node.lineno - 1][:node.col_offset]
        rest = self._file.lines[node.end_lineno - 1][node.end_col_offset:].strip()
        return None if indent.strip() or rest and not rest.startswith(b"#") else indent

    def _lines_of(self, node):
        return node.lineno, 0, node.end_lineno, len(self._file.lines[node.end_lineno - 1].rstrip(b"\r\n"))

    def _changed(self, node, edits):
        """The lines of a statement with edits, without their last line's end."""
        first = node.lineno - 1
        edits = [((line - first, column, end - first, to), text) for (line, column, end, to), text in edits]
        return changed(self._file.lines[first:node.end_lineno], edits).rstrip(b"\r\n")

    def _text_of(self, node, edits):
        """The text of an expression with edits."""
        before = self._file.lines[node.lineno - 1][:node.col_offset]
        after = self._file.lines[node.end_lineno - 1][node.end_col_offset:].rstrip(b"\r\n")
        text = self._changed(node, edits)
        return text[len(before):len(text) - len(after)]

    def may_leave(self, node):
        """Whether what follows a statement may not be reached; what a function does is for those who call it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        text = self._file.source_of(node)
        leaves = (ast.Return, ast.Break, ast.Continue)
        return any(isinstance(one, leaves) for one in ast.walk(node)) or bool(
            re.search(r"\bskip\w*\(|\bxfail\(|importorskip|skipTest|sys\.exit|\bexit\(", text))

    def _assert(self, test):
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                self._assert(part)
            return
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and self._compared(test) or self._all(test):
            return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            text = self._file.span(test.operand)
            self._edit("opposite", test, lambda _: [b"(" + text + b")"])
            return
        text = self._file.span(test)
        self._edit("opposite", test, lambda _: [b"not (" + text + b")"])

    def _compared(self, test):
        left, right = test.left, test.comparators[0]
        if not isinstance(test.ops[0], ast.Eq):
            return False
        # What is equal to more than itself may be equal to the changed value too.
        if not self._is_tolerant(left) and self._value(right) or not self._is_tolerant(right) and self._value(left):
            return True
        return _is_constant(left) and _is_constant(right) or self._sides(test, left, right, _EQUAL)

    def _is_tolerant(self, node):
        text = self._file.source_of(node)
        return bool(_TOLERANT.search(text) and "," in text or _MATCHERS.search(text))

    def _sides(self, node, left, right, form):
        """A comparison that does not hold, made of its two sides; whether it can be made."""
        if any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Starred)) for side in (left, right) for one in ast.walk(side)):
            return False
        if self._file.has_matchers and not (_is_display(left) or _is_display(right)):
            return False
        left, right = self._file.span(left), self._file.span(right)
        self._edit("other", node, lambda count: [
            form % (_other_value(self._file.is_exact), left, right) for _ in range(min(count, OTHERS_MAX))])
        return True

    def _all(self, test):
        """`all` of comparisons, of which none holds in the twin; it fails without any, too."""
        if not isinstance(test, ast.Call) or getattr(test.func, "id", "") != "all" or len(test.args) != 1:
            return False
        many = test.args[0]
        if not isinstance(many, (ast.GeneratorExp, ast.ListComp)) or not isinstance(many.elt, ast.Compare):
            return False
        found = self._within(lambda: len(many.elt.ops) == 1 and self._compared(many.elt))
        for kind, span, news in found:
            def edited(text, span=span):
                return b"(lambda v: v != [] and all(v))([" + self._text_of(many, [(span, text)])[1:-1] + b"])"
            self._edit(kind, test, _each(news, edited))
        return bool(found)

    def _method(self, call):
        if not isinstance(call.func, ast.Attribute) or any(isinstance(one, ast.Starred) for one in call.args):
            return
        name = call.func.attr
        if name in _EXPECTED_SECOND and len(call.args) >= 2:
            if self._value(call.args[1]) or self._value(call.args[0]):
                return
            if not self._pair(call.args, _EQUAL_PAIR) and name == "assertEqual":
                self._rename_method(call.func, b"assertNotEqual")
        elif name == "assertAlmostEqual" and len(call.args) == 2 and not call.keywords:
            if not self._value(call.args[1]) and not self._value(call.args[0]):
                self._pair(call.args, _NEAR_PAIR)
        elif name == "assertTrue" and call.args and isinstance(call.args[0], (ast.Compare, ast.BoolOp)):
            self._assert(call.args[0])
        elif name == "assertTrue" and call.args and self._all(call.args[0]):
            return
        elif name in _OPPOSITES:
            self._rename_method(call.func, _OPPOSITES[name].encode())
        elif name == "assertRaises" and call.args:
            self._other_error(call.args[0])

    def _pair(self, arguments, form):
        """The first two arguments of a call, of which one is not what it was."""
        left, right = arguments[:2]
        end = right.end_lineno, right.end_col_offset
        both = ast.Tuple([left, right], ast.Load(), lineno=left.lineno, col_offset=left.col_offset,
                         end_lineno=end[0], end_col_offset=end[1])
        return self._sides(both, left, right, form)

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
        # Nothing else that is expected holds it: it would end the tests.
        if name == "KeyboardInterrupt":
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
        if self._is_within:
            return []
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


def _is_constant(node):
    return isinstance(node, ast.Constant)


def _is_display(node):
    displays = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.BinOp, ast.JoinedStr)
    return isinstance(node, displays + (ast.Constant,))


def _only(body, name):
    """The function of that name, where nothing else has it."""
    found = [one for one in body if getattr(one, "name", None) == name]
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def _can_be_moved(helper):
    """Whether a function means the same where it is called: its lines may begin elsewhere."""
    if helper.decorator_list or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(helper)):
        return False
    text = [one for one in ast.walk(helper) if isinstance(one, (ast.Constant, ast.JoinedStr))]
    documents = helper.body[0].value if isinstance(helper.body[0], ast.Expr) else None
    return all(one.lineno == one.end_lineno or one is documents for one in text) and helper.body[0].lineno > helper.lineno


def _each(news, edited):
    return lambda count: [edited(text) for text in news(count)]


def _near(file, node):
    """Makes so many texts of values that differ from that of `node`; none where that is not certain."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "approx":
        if len(node.args) != 1 or node.keywords:
            return None
        values, whole, argument = _near_values(node.args[0]), file.span(node), file.span(node.args[0])
        return values and (lambda count: [whole.replace(argument, text, 1) for text in values(count)])
    return _near_values(node)


# Twins of one comparison that has no literal: their form tells them anyhow.
OTHERS_MAX = 2


def _other_value(is_exact):
    """The text of a function of itself and a value, which answers one that differs from all that is equal to that one."""
    if not is_exact:
        return b"lambda o, v: object()"
    number, at = _random.randrange(2, 10), _random.randrange(1 << 8)
    text = (
        "lambda o, v: not v if type(v) is bool"
        " else v {sign} {number} {sign} abs(v) // 50 if type(v) in (int, float) and v - v == 0"
        " else v + {letters!r} if type(v) is str else v + b{letters!r} if type(v) is bytes else {number} if v is None"
        " else v ^ {{{number}}} if type(v) in (set, frozenset)"
        " else type(v)([o(o, one) if at == {at} % len(v) else one for at, one in enumerate(v)])"
        " if type(v) in (list, tuple) and v"
        " else {{key: o(o, v[key]) if at == {at} % len(v) else v[key] for at, key in enumerate(v)}} if type(v) is dict and v"
        " else object()"
    )
    letters = "".join(_random.sample("bcdfghjklmnpqrstvwxz", 2))
    return text.format(sign=_random.choice("+-"), number=number, at=at, letters=letters).encode()


# Comparisons that do not hold, of the text that makes another value and those of both sides. For what is equal to anything
# they hold, on whichever side it stands.
_EQUAL = b"(lambda o, l, r: l == o(o, r) or o(o, l) == r)(%s, %s, %s)"
_EQUAL_PAIR = b"*(lambda o, l, r: (l, o(o, r)) if l == o(o, r) else (o(o, l), r))(%s, %s, %s)"
_NEAR_PAIR = b"*(lambda o, l, r: (l, o(o, r)) if type(r) in (int, float) else (o(o, l), r))(%s, %s, %s)"


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
