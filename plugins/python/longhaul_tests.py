"""Tests within a check: functions `test_*`, classes `Test*`, and `unittest.TestCase`, as pytest would collect them.

A check that imports `pytest` gets what stands here: `raises`, `approx`, `fail`, `skip`, `importorskip`, `param`,
`mark.parametrize`, `mark.skip`, `mark.skipif`, `mark.xfail`, and `fixture` with `yield`, `autouse` and `params`; the
fixtures `monkeypatch` and `capsys` are there. There is no `tmp_path`, since a check cannot write, no `conftest.py` and
no plugin. A test that is skipped shows nothing, so a check of which every test is skipped fails.
"""

import ast
import inspect
import io
import itertools
import os
import re
import reprlib
import sys
import traceback
import types
import unittest

_EXPLAIN = "_lh_explain"

# Files whose frames a traceback does not show.
OWN_FILES = {__file__}

# Types of what stands for something of the work, where the check is judged apart from it.
FOREIGN = set()


def on_error(error):
    """Told what each test ends by that fails; whoever wants to know puts a function of theirs here."""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 200
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 20


def compiled(source, name):
    """The code of a check, whose comparisons say what they compared when they fail."""
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST)
    return compile(ast.fix_missing_locations(_Explained().visit(tree)), name, "exec")


class _Explained(ast.NodeTransformer):
    def visit_Assert(self, node):
        test = node.test
        if node.msg is None and isinstance(test, ast.Compare) and len(test.ops) == 1:
            names = ["_lh_left", "_lh_right"]
            kept = [ast.NamedExpr(ast.Name(name, ast.Store()), value) for name, value in
                    zip(names, (test.left, test.comparators[0]))]
            test.left, test.comparators = kept[0], [kept[1]]
            words = ast.Constant(_WORDS[type(test.ops[0])])
            loads = [ast.Name(name, ast.Load()) for name in names]
            node.msg = ast.Call(ast.Name(_EXPLAIN, ast.Load()), [words, *loads], [])
            for new in (*kept, node.msg):
                for part in ast.walk(new):
                    if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
                        ast.copy_location(part, node)
        return node

    def visit_ClassDef(self, node):
        # A comparison in the body of a class would leave names in it.
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        node.body = [self.visit(part) if isinstance(part, functions) else part for part in node.body]
        return node


_WORDS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}


def _explain(words, left, right):
    return f"assert {_shown(left)} {words} {_shown(right)}"


def _shown(value):
    try:
        return _short.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def set_up(namespace, work):
    """A check finds what a test file at the top of the work would."""
    namespace["__file__"] = os.path.join(work, "check.py")
    namespace[_EXPLAIN] = _explain
    sys.modules["pytest"] = pytest
    source = os.path.join(work, "src")
    if os.path.isdir(source):
        sys.path.insert(1, source)


def run(namespace, complain):
    """Runs the tests that the source defines; the exit code. A source without any has said what it had to say."""
    outcomes = [(name, _one(test)) for name, test in _collected(namespace)]
    if not outcomes:
        return 0
    failed = [(name, why) for name, why in outcomes if why not in (None, _SKIPPED)]
    for name, why in failed:
        complain(f"FAILED {name}\n{why}\n")
    if failed:
        name, why = failed[0]
        last = why.strip().rsplit("\n", 1)[-1].strip()
        complain(f"{len(failed)} of {len(outcomes)} tests failed: {name}: {last}\n")
        return 1
    if all(why is _SKIPPED for _, why in outcomes):
        complain("every test is skipped, which shows nothing\n")
        return 1
    print("1 test passed" if len(outcomes) == 1 else f"{len(outcomes)} tests passed")
    return 0


# Collecting.


def _collected(namespace):
    """The tests, in the order in which they were defined."""
    fixtures = {name: value for name, value in namespace.items() if type(value) is _Fixture}
    for name, value in list(namespace.items()):
        if type(value) in FOREIGN or getattr(value, "__module__", None) != "__main__":
            continue
        if isinstance(value, types.FunctionType) and name.startswith("test"):
            yield from _calls(name, value, value, fixtures)
        elif isinstance(value, type) and issubclass(value, unittest.TestCase):
            for case in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                yield f"{name}.{case._testMethodName}", case
        elif isinstance(value, type) and name.startswith("Test"):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if method.startswith("test"):
                    yield from _calls(f"{name}.{method}", function, (value, method), fixtures)


def _calls(name, function, target, fixtures):
    """One test for each set of parameters."""
    marks = getattr(function, "_lh_marks", [])
    sets = [parameters for kind, parameters in marks if kind == "parametrize"]
    for chosen in itertools.product(*sets):
        values = {parameter: value for one in chosen for parameter, value in one.items()}
        label = name + (f"[{', '.join(map(_shown, values.values()))}]" if values else "")
        yield label, _Call(function, target, values, fixtures, dict(marks))


class _Call:
    def __init__(self, function, target, values, fixtures, marks):
        self.function, self.target, self.values = function, target, values
        self.fixtures, self.marks = fixtures, marks

    def run(self):
        if "skip" in self.marks:
            raise _Skipped(self.marks["skip"])
        open_fixtures = _Open(self.fixtures)
        instance = None
        try:
            bound = self.function
            if isinstance(self.target, tuple):
                instance = self.target[0]()
                bound = getattr(instance, self.target[1])
                getattr(instance, "setup_method", lambda *_: None)(*_as_many(instance, "setup_method", bound))
            for name, fixture in self.fixtures.items():
                if fixture.autouse:
                    open_fixtures.value(name)
            wanted = inspect.signature(bound).parameters
            arguments = {name: open_fixtures.value(name) for name in wanted if name not in self.values}
            result = bound(**arguments, **self.values)
            if inspect.iscoroutine(result):
                import asyncio

                asyncio.run(result)
        finally:
            open_fixtures.close()
            if instance is not None and hasattr(instance, "teardown_method"):
                instance.teardown_method(*_as_many(instance, "teardown_method", None))
        return None


def _as_many(instance, name, argument):
    """pytest hands the method over where it is wanted."""
    function = getattr(instance, name, None)
    return [argument] if function and inspect.signature(function).parameters else []


_SKIPPED = object()


def _one(test):
    """Why a test fails; none when it passes."""
    if isinstance(test, unittest.TestCase):
        result = unittest.TestResult()
        test.run(result)
        wrong = [why for _, why in result.failures + result.errors]
        wrong += ["it passes, and was expected to fail"] if result.unexpectedSuccesses else []
        return "\n".join(wrong) or (_SKIPPED if result.skipped else None)
    expects_failure = "xfail" in test.marks
    try:
        test.run()
    except (_Skipped, unittest.SkipTest):
        return _SKIPPED
    except (Exception, SystemExit, Failed) as error:
        return _SKIPPED if expects_failure else _trace(error)
    return "it passes, and was expected to fail" if expects_failure and test.marks["xfail"] else None


def _trace(error):
    on_error(error)
    shown = traceback.TracebackException.from_exception(error, compact=True)
    shown.stack[:] = [frame for frame in shown.stack if frame.filename not in OWN_FILES]
    return "".join(shown.format()).strip()


# What stands for `pytest`.


class _Skipped(Exception):
    pass


class Failed(BaseException):
    """Not an Exception, so that the work does not swallow it."""


# As tracebacks name it.
Failed.__module__ = "builtins"


class _Fixture:
    def __init__(self, function, autouse=False, params=None, name=None):
        self.function, self.autouse, self.params, self.name = function, autouse, params, name
        self.__module__ = "fixtures"

    def __call__(self, *_, **__):
        raise Failed(f"the fixture `{self.function.__name__}` was called; name it as a parameter of the test")


class _Open:
    """The fixtures of one test."""

    def __init__(self, fixtures):
        self._fixtures = {fixture.name or name: fixture for name, fixture in fixtures.items()}
        self._values, self._ends = {}, []

    def value(self, name):
        if name not in self._values:
            self._values[name] = self._make(name)
        return self._values[name]

    def _make(self, name):
        own = {"monkeypatch": _Monkeypatch, "capsys": _Capsys}
        if name in self._fixtures:
            function = self._fixtures[name].function
            made = function(**{wanted: self.value(wanted) for wanted in inspect.signature(function).parameters})
            if type(made) is types.GeneratorType:
                self._ends.append(lambda: next(made, None))
                return next(made)
            return made
        if name in own:
            made = own[name]()
            self._ends.append(made.undo)
            return made
        raise Failed(f"there is no fixture `{name}` in a check; there are {', '.join([*self._fixtures, *own])}")

    def close(self):
        while self._ends:
            self._ends.pop()()


class _Monkeypatch:
    def __init__(self):
        self._undo = []

    def setattr(self, target, name, value=None, raising=True):
        if isinstance(target, str):
            path, target, value = target.rsplit(".", 1), None, name
            target, name = sys.modules.get(path[0]) or __import__(path[0], fromlist=["_"]), path[1]
        old = getattr(target, name) if raising else getattr(target, name, None)
        self._undo.append(lambda: setattr(target, name, old))
        setattr(target, name, value)

    def delattr(self, target, name, raising=True):
        old = getattr(target, name)
        self._undo.append(lambda: setattr(target, name, old))
        delattr(target, name)

    def setitem(self, mapping, name, value):
        had, old = name in mapping, mapping.get(name)
        self._undo.append(lambda: mapping.__setitem__(name, old) if had else mapping.pop(name, None))
        mapping[name] = value

    def setenv(self, name, value, prepend=None):
        self.setitem(os.environ, name, str(value))

    def delenv(self, name, raising=True):
        if name in os.environ:
            old = os.environ.pop(name)
            self._undo.append(lambda: os.environ.__setitem__(name, old))

    def undo(self):
        while self._undo:
            self._undo.pop()()


class _Capsys:
    def __init__(self):
        self._kept = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()

    def readouterr(self):
        said = types.SimpleNamespace(out=sys.stdout.getvalue(), err=sys.stderr.getvalue())
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        return said

    def undo(self):
        sys.stdout, sys.stderr = self._kept


class _Raises:
    def __init__(self, expected, match=None):
        self._expected, self._match = expected, match
        self.value = self.type = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is None:
            raise Failed(f"DID NOT RAISE {self._expected}")
        if not isinstance(error, self._expected):
            return False
        self.value, self.type = error, kind
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"{str(error)!r} does not match {self._match!r}")
        return True


def _raises(expected, *call, match=None, **arguments):
    if not call:
        return _Raises(expected, match)
    with _Raises(expected) as caught:
        call[0](*call[1:], **arguments)
    return caught


class _Approx:
    def __init__(self, expected, rel=None, abs=None):
        self._expected, self._rel, self._abs = expected, 1e-6 if rel is None else rel, 1e-12 if abs is None else abs

    def __eq__(self, other):
        return self._is_near(self._expected, other)

    def _is_near(self, expected, other):
        if isinstance(expected, dict):
            keys = isinstance(other, dict) and expected.keys() == other.keys()
            return keys and all(self._is_near(value, other[name]) for name, value in expected.items())
        if isinstance(expected, (list, tuple)):
            return len(expected) == len(other) and all(map(self._is_near, expected, other))
        if not isinstance(expected, (int, float, complex)) or isinstance(expected, bool):
            return expected == other
        return expected == other or abs(expected - other) <= max(self._rel * abs(expected), self._abs)

    def __repr__(self):
        return f"approx({self._expected!r})"


def _fail(reason="", **_):
    raise Failed(reason)


def _skip(reason="", **_):
    raise _Skipped(reason)


def _importorskip(name, **_):
    try:
        __import__(name)
    except ImportError as error:
        raise _Skipped(str(error)) from None
    return sys.modules[name]


def _fixture(function=None, **options):
    known = {name: value for name, value in options.items() if name in ("autouse", "params", "name")}
    if known.get("params"):
        raise Failed("a fixture with `params` is not known in a check; use `mark.parametrize`")
    return _Fixture(function, **known) if callable(function) else lambda function: _Fixture(function, **known)


def _param(*values, **_):
    return _Param(values)


class _Param(tuple):
    def __new__(cls, values):
        return super().__new__(cls, values)


class _Mark:
    def parametrize(self, names, values, **_):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def of(value):
            single = len(names) == 1 and type(value) is not _Param
            return dict(zip(names, [value] if single else value, strict=True))

        return _marked("parametrize", [of(value) for value in values])

    def skip(self, function=None, reason=""):
        return _marked("skip", reason)(function) if callable(function) else _marked("skip", reason)

    def skipif(self, condition, reason=""):
        return _marked("skip", reason) if condition else _marked("known", None)

    def xfail(self, function=None, strict=False, **_):
        return _marked("xfail", strict)(function) if callable(function) else _marked("xfail", strict)

    def __getattr__(self, name):
        def mark(*arguments, **_):
            plain = len(arguments) == 1 and callable(arguments[0])
            return arguments[0] if plain else lambda marked: marked

        return mark


def _marked(kind, value):
    def mark(function):
        function._lh_marks = [*getattr(function, "_lh_marks", []), (kind, value)]
        return function

    return mark


def _main(*_, **__):
    return run(vars(sys.modules["__main__"]), sys.stderr.write)


pytest = types.ModuleType("pytest", __doc__)
vars(pytest).update(
    raises=_raises, approx=_Approx, fail=_fail, skip=_skip, importorskip=_importorskip, fixture=_fixture, param=_param,
    mark=_Mark(), main=_main, skip_exception=_Skipped,
)
