"""Reports each test by name from within the process that runs it: a plugin of pytest, and a main program for unittest.

The code under test shares this process, so nothing here is a secret from code that looks for it. What it reports is
believed only together with the audit, in which nobody inside knows which tests must fail.
"""

import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import types


class _Channel:
    def __init__(self, told):
        self._fd, nonce = told["fds"]
        self._nonce = os.read(nonce, 64).decode()
        os.close(nonce)
        os.set_inheritable(self._fd, False)
        self._seq, self._pid = 0, os.getpid()
        self._write, self._dumps, self._getpid = os.write, json.dumps, os.getpid

    def tell(self, **event):
        # A fork of the runner reports nothing: its parent does.
        if self._getpid() != self._pid:
            return
        self._seq += 1
        line = self._dumps(dict(event, nonce=self._nonce, seq=self._seq)).encode() + b"\n"
        while line:
            line = line[self._write(self._fd, line):]


# Stubs of the work, for collecting without running it.


class _AnyType(type):
    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Any

    def __call__(cls, *arguments, **named):
        # A decorator leaves what it decorates.
        if cls is _Any:
            return arguments[0] if len(arguments) == 1 and not named and callable(arguments[0]) else _Any
        return super().__call__(*arguments, **named)

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __bool__(cls):
        return True

    def __getitem__(cls, _):
        return _Any

    def _operator(cls, *_):
        return _Any

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operator
    __or__ = __ror__ = __and__ = __rand__ = __mod__ = __floordiv__ = __pow__ = __neg__ = __invert__ = _operator
    __lt__ = __le__ = __gt__ = __ge__ = _operator


class _Any(Exception, metaclass=_AnyType):
    """Stands for whatever the work defines."""


class _StubModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Any


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for every module of the work that neither tests nor is pinned."""

    def __init__(self, work, kept):
        self._work, self._kept = os.path.realpath(work), {os.path.join(os.path.realpath(work), path) for path in kept}

    def find_spec(self, name, path=None, target=None):
        parent = sys.modules.get(name.rpartition(".")[0])
        if isinstance(parent, _StubModule):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None:
            source = os.path.join(self._work, "src", *name.split("."))
            is_own = path is None and (os.path.isdir(source) or os.path.exists(source + ".py"))
            return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_own else None
        if self._is_kept(spec):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _StubModule(spec.name)

    def exec_module(self, module):
        pass

    def _is_kept(self, spec):
        if spec.origin is None:
            places = [os.path.realpath(place) for place in spec.submodule_search_locations or []]
            return not any(self._is_of_the_work(place) for place in places) or any(map(_is_of_tests, places))
        origin = os.path.realpath(spec.origin)
        return not self._is_of_the_work(origin) or origin in self._kept or _is_of_tests(origin)

    def _is_of_the_work(self, path):
        return path == self._work or path.startswith(self._work + os.sep)


def _is_of_tests(path):
    name = os.path.basename(path)
    parts = path.split(os.sep)
    return (name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
            or any(part in ("tests", "test") for part in parts[-4:]))


# What the runner is made of, and the state of the process that a test must not leave changed.

_RUNNER = (
    "_pytest.runner", "_pytest.python", "_pytest.reports", "_pytest.outcomes", "_pytest.assertion",
    "_pytest.assertion.rewrite", "_pytest.assertion.util", "_pytest.raises", "_pytest.python_api", "_pytest.unittest",
    "_pytest.main", "unittest.case", "unittest.result", "unittest.suite", "unittest.runner", "unittest.loader",
    "pluggy._callers", "pluggy._hooks", "pluggy._manager", __name__,
)

# Of builtins only what a verdict needs: a test may replace others for itself.
_BUILTINS = ("AssertionError", "BaseException", "Exception", "isinstance", "issubclass", "getattr", "type", "bool", "len",
             "__import__", "__build_class__")


def _snapshot():
    import builtins

    seen = {("builtins", name): id(getattr(builtins, name, None)) for name in _BUILTINS}
    for module_name in _RUNNER:
        module = sys.modules.get(module_name)
        for name, value in list(vars(module).items()) if module else ():
            if isinstance(value, (types.FunctionType, type)):
                seen[module_name, name] = (id(value), id(getattr(value, "__code__", None)))
            if isinstance(value, type) and value.__module__ == module_name:
                for part, inner in list(vars(value).items()):
                    inner = getattr(inner, "__func__", inner)
                    if isinstance(inner, types.FunctionType):
                        seen[module_name, name, part] = (id(inner), id(inner.__code__))
    return seen


def _process_state():
    # Handlers of signals are the work's own: what sends one is looked at.
    return {
        "sys.setprofile": repr(sys.getprofile()),
        "an interval timer": signal.getitimer(signal.ITIMER_REAL)[0] > 0 or signal.getitimer(signal.ITIMER_PROF)[0] > 0,
    }


class _Watch:
    """Compares the runner at the end with what it was when it started."""

    def __init__(self, told):
        self._work, self._modules, self._literals = told["work"], told["modules"], told["literals"]
        self._runner, self._state = _snapshot(), _process_state()

    def changed(self):
        runner, state = _snapshot(), _process_state()
        # What was imported later was not there to compare.
        bad = [".".join(key) for key, value in self._runner.items() if runner.get(key) != value]
        bad += [key for key, value in self._state.items() if state[key] != value]
        for name, path in self._modules.items():
            origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
            if name in sys.modules and (origin is None or os.path.realpath(origin) != self._real(path)):
                bad.append("module %s" % name)
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            bad += self._changed_literals(module, getattr(spec, "origin", None))
        return sorted(set(bad))[:8]

    def _real(self, path):
        return os.path.realpath(os.path.join(self._work, path))

    def _changed_literals(self, module, origin):
        if not isinstance(origin, str):
            return
        expected = self._literals.get(os.path.relpath(os.path.realpath(origin), os.path.realpath(self._work)))
        for name, text in (expected or {}).items():
            if repr(vars(module).get(name)) != text:
                yield "%s.%s" % (module.__name__, name)


def _told():
    text = os.environ.pop("LONGHAUL_REPORT", None)
    return json.loads(text) if text else None


_TOLD = _told()
if _TOLD and _TOLD["mode"] == "collect":
    sys.meta_path.insert(0, _Stubs(_TOLD["work"], _TOLD["kept"]))


# pytest.


class _Plugin:
    def __init__(self, channel, told, root):
        self._channel, self._told, self._watch = channel, told, _Watch(told)
        self._root = os.path.relpath(root, told["work"])

    def pytest_collectreport(self, report):
        if report.failed:
            self._channel.tell(broken=self._id(report.nodeid))

    def pytest_collection_finish(self, session):
        if self._told["mode"] != "collect":
            return
        self._channel.tell(args=list(session.config.option.file_or_dir or []))
        for item in session.items:
            marks = [mark.name for mark in item.iter_markers()]
            skips = any(mark in ("skip", "skipif", "xfail") for mark in marks)
            fixtures = list(getattr(item, "fixturenames", []))
            self._channel.tell(id=self._id(item.nodeid), skips=skips, fixtures=fixtures)

    def _id(self, nodeid):
        """Names of tests begin at the root that pytest found, which need not be the work's."""
        return nodeid if self._root == "." else os.path.normpath(os.path.join(self._root, nodeid))

    def pytest_runtest_logreport(self, report):
        # Of the parts of a test those that fail say something of it.
        if type(report).__name__ == "SubtestReport" and not report.failed:
            return
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self._channel.tell(id=self._id(report.nodeid), when=report.when, outcome=outcome)

    def pytest_sessionfinish(self, exitstatus):
        self._channel.tell(end=int(exitstatus), changed=self._watch.changed())


def pytest_configure(config):
    if _TOLD is None:
        return
    # What a test brings in later would be compared with nothing.
    for name in ("_pytest.unittest", "unittest.case", "_pytest.raises"):
        try:
            __import__(name)
        except ImportError:
            pass
    root = str(getattr(config, "rootpath", None) or config.rootdir)
    config.pluginmanager.register(_Plugin(_Channel(_TOLD), _TOLD, root), "longhaul")


# unittest.


def _main(arguments):
    import unittest

    channel, watch, is_audit = _Channel(_TOLD), _Watch(_TOLD), _TOLD["mode"] == "audit"

    def id_of(test):
        kind = type(test)
        module = sys.modules.get(kind.__module__)
        path = os.path.relpath(os.path.realpath(getattr(module, "__file__", None) or "?"), os.path.realpath("."))
        return "%s::%s::%s" % (path, kind.__qualname__.replace(".", "::"), getattr(test, "_testMethodName", "?"))

    # Tests by what is set up for several of them, as the runner names it.
    together = {}

    def skipped(id):
        channel.tell(id=id, when="setup", outcome="skipped")
        channel.tell(id=id, when="teardown", outcome="passed")

    class Result(unittest.TextTestResult):
        _outcome = None

        def startTest(self, test):
            super().startTest(test)
            self._outcome = "passed"
            channel.tell(id=id_of(test), when="setup", outcome="passed")

        def stopTest(self, test):
            # Python 3.12.1 does not start a test that a decorator skips.
            if self._outcome is None:
                skipped(id_of(test))
            else:
                channel.tell(id=id_of(test), when="call", outcome=self._outcome)
                channel.tell(id=id_of(test), when="teardown", outcome="passed")
            self._outcome = None
            super().stopTest(test)

        def addError(self, test, err):
            self._outcome = "failed"
            super().addError(test, err)

        def addFailure(self, test, err):
            self._outcome = "failed"
            super().addFailure(test, err)

        def addSubTest(self, test, subtest, err):
            if err is not None:
                self._outcome = "failed"
            super().addSubTest(test, subtest, err)

        def addSkip(self, test, reason):
            # Of a test whose parts are skipped and fail, the failure counts.
            if self._outcome == "passed":
                self._outcome = "skipped"
            for one in together.pop(test.id(), ()):
                skipped(one)
            super().addSkip(test, reason)

        def addExpectedFailure(self, test, err):
            self._outcome = "xfailed"
            super().addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test):
            self._outcome = "failed"
            super().addUnexpectedSuccess(test)

    def tests_in(suite):
        for part in suite:
            if isinstance(part, unittest.TestSuite):
                yield from tests_in(part)
            else:
                yield part

    class Runner(unittest.TextTestRunner):
        resultclass = Result

        def run(self, test):
            if _TOLD["mode"] != "collect":
                self.failfast = self.failfast and not is_audit
                for one in tests_in(test):
                    kind = type(one)
                    name = "%s.%s" % (kind.__module__, kind.__qualname__)
                    together.setdefault("setUpClass (%s)" % name, []).append(id_of(one))
                    together.setdefault("setUpModule (%s)" % kind.__module__, []).append(id_of(one))
                return super().run(test)
            channel.tell(args=[])
            for one in tests_in(test):
                if type(one).__module__ == "unittest.loader":
                    channel.tell(broken=one.id().rpartition(".")[2])
                    continue
                # A file can add what the work makes, which is a stub here.
                if not isinstance(one, unittest.TestCase):
                    continue
                method = getattr(one, getattr(one, "_testMethodName", ""), None)
                marks = [getattr(target, name, False) for target in (one, method)
                         for name in ("__unittest_skip__", "__unittest_expecting_failure__")]
                channel.tell(id=id_of(one), skips=any(marks), fixtures=[])
            return Result(self.stream, False, 0)

    # As `python -m unittest` has it: the directory that it is started in.
    sys.path[0] = ""
    program = unittest.main(module=None, argv=["python -m unittest", *arguments], testRunner=Runner, exit=False)
    ran_none = program.result.testsRun == 0 and sys.version_info >= (3, 12) and not program.result.skipped
    code = 0 if program.result.wasSuccessful() and not ran_none else (5 if ran_none else 1)
    channel.tell(end=code, changed=watch.changed())
    sys.exit(code)


if __name__ == "__main__":
    sys.modules["longhaul_report"] = sys.modules["__main__"]
    _main(sys.argv[1:])
