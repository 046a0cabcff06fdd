"""A check judged apart: it runs here, and the work in an instance of its own, behind a pipe.

The work is told what to call with which arguments, and answers with data. What a check expects never leaves this
interpreter, and no code of the work enters it: of an answer values are built here and compared here, and what is no plain
value is a number (`longhaul_objects.py`). The work may answer what it likes, at the price of its own verdict. What cannot
be decided on data is not decided here: the host has such a check judged beside the work, as it was before there was a
pipe. So does it with a check that fails by an error that is neither an assertion's nor the work's, which may be ours.
"""

import builtins
import importlib.machinery
import os
import sys
import unittest
import weakref

import longhaul_objects as objects
import longhaul_shape
import longhaul_tests
import longhaul_wire
from longhaul_objects import Gone, NotApart
from longhaul_wire import Broken, Pipe, Unplain, Values, expect

# Requests of one check. Each is a round between two instances.
REQUESTS_MAX = 10_000

# Containers that are looked through for those that nobody holds any more, before each request.
_LOOKED_THROUGH = 64

# The judge of the check that runs here; none where a check runs beside its work.
_judge = None


def begin(source, work, pipe=None):
    """Before a check runs; false when it need not. `work` is where the work sees itself."""
    global _judge
    _judge = _Judge(pipe or Pipe(), work)
    _judge.expects_stop = "StopIteration" in source or "StopAsyncIteration" in source
    NotApart.why = longhaul_shape.why_beside(source)
    if NotApart.why is not None:
        return False
    objects.ask = _judge.ask
    sys.meta_path.append(_Modules(_judge))
    os.getcwd = lambda: work
    longhaul_tests.FOREIGN.update(objects.FOREIGN)
    longhaul_tests.OWN_FILES.update({__file__, objects.__file__, longhaul_wire.__file__})
    longhaul_tests.on_error = note
    _watch_cases(unittest.TestResult)
    unittest.main = _main
    return True


def end(code):
    """What the host is told beside the output: why the check is to be judged beside the work, or that the work ended."""
    why, doubt = NotApart.why, _judge.doubt
    if why is None and code != 0 and doubt is not None and not _judge.is_certain:
        why = f"it ends by a `{doubt}` that is neither an assertion's nor the work's"
    return {"beside": why, "gone": _judge.is_gone}


def is_of_work(error):
    """Whether the work raised an error."""
    return _judge is not None and id(error) in _judge.raised


def note(error):
    """An error that a test or the check ended by."""
    if _judge is None or isinstance(error, (Gone, NotApart)):
        return
    if is_of_work(error) or isinstance(error, _CERTAIN) or _misses_a_name(error):
        _judge.is_certain = True
    elif _judge.doubt is None:
        _judge.doubt = type(error).__name__


_CERTAIN = (AssertionError, longhaul_tests.Failed, SystemExit, KeyboardInterrupt)


def _misses_a_name(error):
    """Whether a module of the work has not what a check imports from it."""
    return isinstance(error, ImportError) and type(sys.modules.get(error.name)) is objects.WorkModule


def _main(*_, exit=True, **__):
    """As `unittest.main`, whose loader looks at the type of all that a check has imported."""
    code = longhaul_tests.run(vars(sys.modules["__main__"]), sys.stderr.write)
    if exit:
        sys.exit(code)


def _watch_cases(result):
    """Has errors of `unittest` noted, whoever collects them."""
    for name in ("addError", "addFailure", "addSubTest"):
        old = getattr(result, name)

        def add(self, test, *rest, _old=old):
            if rest[-1] is not None:
                note(rest[-1][1])
            return _old(self, test, *rest)

        setattr(result, name, add)


class _Judge(Values):
    def __init__(self, pipe, work):
        super().__init__(0)
        self._pipe, self._work = pipe, work
        self._asked = 0
        self._objects = weakref.WeakValueDictionary()
        self._classes = {}
        self._kept = _LOOKED_THROUGH
        self._environment, self._stdin = dict(os.environ), sys.stdin
        self.paths = list(sys.path)
        # Errors of the work by their `id`, held so that no other gets it.
        self.raised = {}
        # The first error that may be ours, and whether there was one that is not.
        self.doubt, self.is_certain = None, False
        self.is_gone = self.expects_stop = False

    def ask(self, operation, *values):
        """What the work answers; raises what it raises."""
        try:
            return self._ask(operation, values)
        except Unplain as error:
            raise NotApart(f"it hands the work {error}") from None
        except Broken as error:
            raise NotApart(f"the work answers with {error}") from None

    def _ask(self, operation, values):
        if NotApart.why is not None:
            raise NotApart(NotApart.why)
        if self._asked >= REQUESTS_MAX:
            raise NotApart(f"it asks the work for more than {REQUESTS_MAX} things")
        if dict(os.environ) != self._environment or sys.stdin is not self._stdin:
            raise NotApart("it changes what the interpreter hands to a program")
        self._asked += 1
        request = {"n": self._asked, "op": operation, "values": [self.encode(value) for value in values]}
        request.update(forget=self._unheld(), put=self.changes(), drop=[*objects.dropped])
        objects.dropped.clear()
        answer = self._exchange(request)
        self._print(answer.get("printed"))
        if "no" in answer:
            raise NotApart(f"the work answers with {expect(answer['no'], str)}")
        self.take(answer.get("put"))
        if "raised" in answer:
            raise self._raised(answer["raised"], operation)
        return self.decode(answer.get("value"))

    def _exchange(self, request):
        answer = None
        if not self.is_gone:
            try:
                self._pipe.send(request)
                answer = self._pipe.receive()
            except OSError:
                pass
        if answer is None:
            self.is_gone = True
            raise Gone("the work has ended")
        if expect(answer.get("n"), int) != request["n"]:
            raise Broken("an answer to something else")
        return answer

    def _print(self, printed):
        for text, stream in zip(expect(printed, list), (sys.stdout, sys.stderr)):
            if expect(text, str):
                stream.write(text)

    # Values.

    def other(self, value):
        number = objects.number_of(value)
        if number is not None:
            return ["object", number]
        name = _name_in_builtins(value)
        if name is not None:
            return ["builtin", name]
        if isinstance(value, Exception) and _name_in_builtins(type(value)) is not None:
            return ["error", ["builtin", type(value).__name__], self.encode(tuple(value.args))]
        raise Unplain(f"something of its own, of the type `{type(value).__name__}`")

    def other_value(self, value):
        if value[:1] == ["object"] and len(value) == 5:
            if expect(value[3], bool):
                raise NotApart("the work answers with something to wait for")
            raw = tuple(self.decode(part) for part in expect(value[4], list)[:1])
            return self._object(value[1], expect(value[2], bool), raw)
        if value[:1] in (["class"], ["builtin"], ["library"]):
            return self._class(value)
        return super().other_value(value)

    def _object(self, number, is_called, raw=()):
        found = self._objects.get(expect(number, int))
        if found is None:
            found = self._objects[number] = objects.made(number, is_called, raw)
        return found

    def _class(self, value):
        """A class of errors."""
        tag, *parts = expect(value, list) or [None]
        if tag == "builtin" and len(parts) == 1:
            return objects.language_error(expect(parts[0], str))
        if tag == "library" and len(parts) == 2:
            return objects.library_error(expect(parts[0], str), expect(parts[1], str))
        if tag != "class" or len(parts) != 4 or parts[3] == []:
            raise Broken("an error without a class")
        number, name, module, bases = parts
        found = self._classes.get(expect(number, int))
        if found is None:
            bases = tuple(self._class(base) for base in expect(bases, list))
            name, module = (expect(text, str)[:objects.NAME_CHARACTERS_MAX] for text in (name, module))
            try:
                value = self._object(number, True)
                found = self._classes[number] = objects.error_class(value, name, module, bases)
            except (TypeError, ValueError) as error:
                raise Broken(f"a class that there is not: {error}") from None
        return found

    # Errors.

    def _raised(self, told, operation):
        error = self._error(told, 0)
        if operation == "next" or not isinstance(error, (StopIteration, StopAsyncIteration)):
            return error
        if self.expects_stop:
            return NotApart(f"the work raises `{type(error).__name__}`")
        # Anywhere else it would end a loop of the check, with all that the loop compares.
        error = RuntimeError(f"the work raised {type(error).__name__}")
        self.raised[id(error)] = error
        return error

    def _error(self, told, depth):
        expect(told, dict)
        kind, args = self._class(told.get("class")), expect(self.decode(told.get("args")), tuple)
        texts = [expect(text, str, type(None)) for text in expect(told.get("texts"), list)]
        fields = [expect(field, list) for field in expect(told.get("fields"), list)]
        if len(texts) != 2 or any(len(field) != 2 for field in fields):
            raise Broken("an error without its parts")
        fields = [(expect(name, str), self.decode(value)) for name, value in fields]
        error = objects.error_of(kind, self._object(told.get("object"), False), args, texts, fields)
        for name in ("cause", "context") if depth < 3 else ():
            if told.get(name) is not None:
                setattr(error, f"__{name}__", self._error(told[name], depth + 1))
        error.__suppress_context__ = expect(told.get("suppress"), bool)
        error.__traceback__ = objects.frames_of(told.get("frames"), self._work)
        self.raised[id(error)] = error
        return error

    # What nobody holds.

    def _unheld(self):
        """The numbers of containers that the check has let go of, so that the work need not say what becomes of them."""
        if not _LOOKED_THROUGH < len(self.shared) <= self._kept:
            shared = self.shared.items()
            numbers = [number for number, entry in shared if _count(entry) <= _ALONE and self.is_known(entry)]
            for number in numbers:
                self.forget(number)
            self._kept = max(_LOOKED_THROUGH, 2 * len(self.shared))
            return numbers
        return []


def _count(entry):
    return sys.getrefcount(entry[0])


_ALONE = _count([[], ()])


def _name_in_builtins(value):
    """The name of a type or function of the language, or of a method such as `str.lower`."""
    if type(value) is type(str.lower):
        outer, name = _name_in_builtins(value.__objclass__), value.__name__
        return f"{outer}.{name}" if outer and getattr(value.__objclass__, name, None) is value else None
    name = value.__name__ if type(value) in (type, type(len)) else None
    return name if name is not None and getattr(builtins, name, None) is value else None


class _Modules:
    """Finds in the work what is not in this interpreter."""

    def __init__(self, judge):
        self._judge = judge

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        is_here = top in sys.modules and type(sys.modules[top]) is not objects.WorkModule
        if is_here or top in sys.stdlib_module_names:
            return None
        # What the check has put into the path, which the work sees where the check has put it.
        new = tuple(place for place in sys.path if type(place) is str and place not in self._judge.paths)
        first, last = (new, ()) if new and sys.path[0] in new else ((), new)
        found = self._judge.ask("import", name, first, last)
        value, is_package, file = found if type(found) is tuple and len(found) == 3 else (None, False, None)
        if type(value) not in (objects.Object, objects.Function):
            raise NotApart("the work answers with no module")
        file = file if type(file) is str else None
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=is_package is True, loader_state=value)
        spec.has_location = file is not None
        return spec

    def create_module(self, spec):
        return objects.WorkModule(spec.name, spec.loader_state)

    def exec_module(self, module):
        pass
