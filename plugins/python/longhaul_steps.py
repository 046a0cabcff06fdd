"""The function `step` of the tool `python`: runs one step of a graph, or of a session, in the steps' shared namespace.

A step is given values of the steps before it, which are loaded when it first looks one up, and answers what it
looked up and what it changed. Variables that share an object are one group, which is loaded, compared and kept as a
whole (`longhaul_digest`, `longhaul_values`). What cannot be kept (a generator, an open file) is said to be live, with
the reason. This file decides nothing about other steps: which values are given, and what runs again, is the host's.
The step shares the interpreter with it and can make it lie, to the harm of its own graph only.
"""

import __future__

import ast
import base64
import builtins
import functools
import hashlib
import io
import json
import operator
import os
import random
import reprlib
import sys

import longhaul_session
from longhaul_digest import Captured, marshalled
from longhaul_files import note_files, noted_files
from longhaul_namespace import Group, Main, State, is_variable
from longhaul_values import BUILTINS, MAIN, clean, current, held, known, loaded, name_of, pickled, remember, text_of, touch_of_code

try:
    import decimal
except ImportError:
    decimal = None

# Bytes of all values that a step gives back, as text. A group that would go over it is live.
VALUES_BYTES_MAX = 48 << 20
# Names that one step may look up, leave behind or unbind.
NAMES_MAX = 10_000
# Characters of the value of the last expression.
RESULT_CHARACTERS_MAX = 10_000
# Variables that are shown when a step raised, and characters of each.
VALUES_MAX = 20
VALUE_CHARACTERS_MAX = 200
# Frames of a traceback: so many of its beginning, and as many of its end.
FRAMES_MAX = 25

WORK = "/work"

# Where the host puts the packages that it was told to give, when it was.
PACKAGES = "/packages"
RANDOM, DECIMAL = "<random>", "<decimal>"

# Kept before any step runs, which may put something else in their places.
_builtins = vars(builtins)
_dict_copy, _dict_clear, _dict_update, _repr = dict.copy, dict.clear, dict.update, repr
_StringIO, _BytesIO, _TextIOWrapper, _write = io.StringIO, io.BytesIO, io.TextIOWrapper, io.FileIO.write
_from_base64, _to_base64, _sha256 = base64.b64decode, base64.b64encode, hashlib.sha256
_loads_json, _dumps_json = json.loads, json.dumps
_modules, _is = sys.modules, operator.is_
_RECURSION_MAX = sys.getrecursionlimit()


def answer(arguments):
    """Runs the step that the arguments, a JSON object of the host's, ask for; gives the answer as JSON."""
    request = _loads_json(arguments)
    prelude = request.get("prelude") or ()
    groups = [Group(fields) for fields in request["given"]]
    hidden = [group for group in groups if group.names[0] in (RANDOM, DECIMAL)]
    current.state = State([group for group in groups if group not in hidden])
    current.namespace, current.state.drew = current.state.namespace, False
    _enter(is_quiet=bool(prelude))
    random_seeded = _load_hidden(hidden)
    for step in prelude:
        random_seeded = _seed(step["seed"], random_seeded)
        _run(step["id"], step["source"], False)
        _take_builtins_back()
    if prelude:
        _look_before()
        _open_streams()
    hidden_before = _hidden(_seed(request["seed"], random_seeded))
    modules = _dict_copy(_modules)
    note_files(request.get("directories"))
    for name, function in _random.items():
        setattr(random, name, _noted_random[name])
    session = longhaul_session.enter(request, current.namespace) if "session" in request else None
    error, result = _run(request["id"], request["source"], True, session)
    if session is not None:
        session.leave(error, current.namespace, current.state.noted, _OWN_FILES)
    unkept = _take_builtins_back()
    for name, function in _random.items():
        setattr(random, name, function)
    _modules.update(modules)
    sys.modules, sys.stdout, sys.stderr = _modules, _StringIO(), _StringIO()
    sys.setrecursionlimit(_RECURSION_MAX)
    fields = {"exit_code": 0, "error": _failure(error) if error else None, "result": result, "unkept": unkept}
    fields["values"] = _values() if error else {}
    if session is not None:
        fields.update(session.answer())
    fields.update(_look_after(hidden_before))
    return _dumps_json(fields)


def _enter(is_quiet):
    if is_quiet:
        sys.stdout, sys.stderr = _StringIO(), _StringIO()
    else:
        _open_streams()
    sys.stdin = _TextIOWrapper(_BytesIO(b""), "utf-8")
    sys.argv = ["<step>"]
    sys.dont_write_bytecode = True
    # The work may have a module of the same name.
    sys.modules.pop("app", None)
    sys.modules[MAIN] = Main(MAIN)
    if os.path.isdir(PACKAGES):
        sys.path.append(PACKAGES)
    if os.path.isdir(WORK):
        sys.path.insert(0, WORK)
        os.chdir(WORK)


class _Whole(io.FileIO):
    """Writes all that it is given, and not as much as goes at once."""

    def write(self, data):
        left = memoryview(data)
        while left:
            left = left[_write(self, left) :]
        return len(data)


def _open_streams():
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        # What bounds it is the host's console.
        raw = _Whole(descriptor, "wb", closefd=False)
        stream = _TextIOWrapper(raw, "utf-8", "backslashreplace", newline="\n", write_through=True)
        setattr(sys, name, stream)
        remember(stream, "sys", name)


def _run(name, source, shows, session=None):
    """Runs a source in the namespace; gives how it failed, and what its last expression was."""
    namespace = current.namespace
    try:
        body, last = _compiled(source, f"<step {name}>" if session is None else session.file, shows)
        touch_of_code(body)
        exec(body, namespace)
        if last is None:
            return None, None
        touch_of_code(last)
        value = eval(last, namespace)
        if session is not None:
            session.outputs.show_result(value)
            return None, None
        return None, None if value is None else clean(_repr(value)[:RESULT_CHARACTERS_MAX])
    except BaseException as error:
        return error, None


# A tree of objects takes a hundred times the memory of its source.
_TREE_CHARACTERS_MAX = 200_000
_FUTURE = functools.reduce(int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))


def _compiled(source, file, shows):
    """The code of a source, and that of its last expression when its value is wanted."""
    if not shows or len(source) > _TREE_CHARACTERS_MAX:
        return compile(source, file, "exec", dont_inherit=True), None
    tree = compile(source, file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if type(last) is not ast.Expr:
        return compile(tree, file, "exec", dont_inherit=True), None
    tree.body.pop()
    body = compile(tree, file, "exec", dont_inherit=True)
    return body, compile(ast.Expression(last.value), file, "eval", body.co_flags & _FUTURE, dont_inherit=True)


_OWN_FILES = frozenset(sys.modules[name].__file__ for name in ("longhaul_digest", "longhaul_namespace", "longhaul_values"))
_OWN_FILES |= {__file__}


def _failure(error):
    frames = []
    try:
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename not in _OWN_FILES:
                place = {"file": clean(code.co_filename[:200]), "line": trace.tb_lineno or 0}
                frames.append({**place, "name": clean(code.co_name[:200])})
            trace = trace.tb_next
        if len(frames) > 2 * FRAMES_MAX:
            frames = frames[:FRAMES_MAX] + frames[-FRAMES_MAX:]
        line = error.lineno if isinstance(error, SyntaxError) else None
    except BaseException:
        line = None
    if type(line) is not int or not 0 <= line < 1 << 31:
        line = None
    return {"type": name_of(type(error)), "message": text_of(error), "line": line, "frames": frames}


_short = reprlib.Repr()
_short.maxdict = _short.maxlist = _short.maxtuple = _short.maxset = 20
_short.maxstring = _short.maxother = 100


def _values():
    """Short texts of the variables that the step had looked up; those that were builtins are none."""
    values = {}
    for name in sorted(filter(is_variable, current.state.noted)):
        if len(values) < VALUES_MAX and dict.__contains__(current.namespace, name) and name not in current.state.phantoms:
            values[name] = _short_text_of(dict.__getitem__(current.namespace, name))
    return values


def _short_text_of(value):
    try:
        length = f" of {len(value)}" if isinstance(value, (dict, list, tuple, str, set)) else ""
        return clean(f"{name_of(type(value))}{length}: {_short.repr(value)}"[:VALUE_CHARACTERS_MAX])
    except BaseException:
        return f"{name_of(type(value))} (it cannot be shown)"


def _take_builtins_back():
    """Undoes what a step did to the builtins, which no later step sees; gives what it was."""
    found = _dict_copy(_builtins)
    _dict_clear(_builtins)
    _dict_update(_builtins, BUILTINS)
    if [*found] == [*BUILTINS] and all(map(_is, found.values(), BUILTINS.values())):
        return []
    changed = sorted(
        clean(str(name)[:200])
        for name in {*found, *BUILTINS} - {"_"}
        if found.get(name, current) is not BUILTINS.get(name, current)
    )
    return [f"builtins.{name}" for name in changed[:100]]


# State that is in no variable.


def _load_hidden(groups):
    """Puts it where it was. Tells whether the generator of random numbers is still as it was seeded."""
    values = {}
    for group in groups:
        values.update(loaded(_from_base64(group.blob)))
    if DECIMAL in values:
        _set_decimal(values[DECIMAL])
    if RANDOM in values:
        _random["setstate"](values[RANDOM])
        return None
    return _UNTOUCHED


def _noting(function):
    """What a step does to the generator counts, also when it leaves it as it was."""

    def call(*args, **kwargs):
        if current.state is not None:
            current.state.drew = True
        return function(*args, **kwargs)

    return functools.update_wrapper(call, function)


_random = {name: getattr(random, name) for name in ("seed", "getstate", "setstate")}
_noted_random = {name: _noting(function) for name, function in _random.items()}
for _name, _function in _noted_random.items():
    remember(_function, "random", _name)
_UNTOUCHED = ()


def _seed(seed, seeded):
    """Seeds for a step, unless a step before it drew from the generator or seeded it; gives the state, or none."""
    if seeded is None or (seeded is not _UNTOUCHED and _random["getstate"]() != seeded):
        return None
    _random["seed"](int(seed, 16))
    return _random["getstate"]()


def _hidden(random_state=None):
    return {RANDOM: random_state or _random["getstate"](), DECIMAL: _decimal_state()}


def _decimal_state():
    """Without the flags: nearly every operation raises one."""
    if decimal is None:
        return None
    now = decimal.getcontext()
    traps = sorted(signal.__name__ for signal, trapped in now.traps.items() if trapped)
    return (now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, tuple(traps))


def _set_decimal(state):
    traps = [getattr(decimal, name) for name in state[6]]
    decimal.setcontext(decimal.Context(*state[:6], flags=[], traps=traps))


# What is answered.


def _look_before():
    """Notes the groups as the steps that were run first left them."""
    current.state.look_anew()
    roots = current.state.roots()
    captured = Captured(roots)
    current.state.before.update((names, value) for names, value in captured.groups.items() if value is not None)
    current.state.mates = {name: names for names in captured.groups for name in names}
    current.state.drew = False


def _look_after(hidden_before):
    roots, noted = current.state.roots(), {name for name in current.state.noted if is_variable(name)}
    names_before = {name for names in current.state.before for name in names if name in current.state.given}
    deleted = {name for name in names_before if name not in roots and current.state.given[name].loaded}
    deleted |= {name for name in current.state.deleted if name not in roots and is_variable(name)}
    if max(len(roots), len(noted), len(deleted)) > NAMES_MAX:
        raise ValueError(f"the step looks up, leaves or deletes more than {NAMES_MAX} variables")
    captured = Captured(roots)
    groups, rebound, left = [], [], VALUES_BYTES_MAX
    for names, value in captured.groups.items():
        if _is_as_it_was(names, value, noted):
            # What shares with it now may have been shared by nothing before, and is none of the changes.
            rebound += filter(current.state.is_rebound, names)
            continue
        groups.append(_group(names, value, captured, roots, left))
        left -= len(groups[-1].get("blob", ""))
    groups += _hidden_groups(hidden_before, noted)
    fields = {"reads": sorted(noted), "all": current.state.all, "groups": groups, "deleted": sorted(deleted)}
    return {**fields, "rebound": rebound, **noted_files()}


def _is_as_it_was(names, value, noted):
    """What was bound without a look at what was there is the step's own, also when it is equal."""
    state = current.state
    is_untouched = all(map(state.is_untouched, names))
    if value is not None and state.before.get(names) == value:
        return is_untouched or state.all or not noted.isdisjoint(names)
    mates = (mate for name in names for mate in state.mates.get(name, ()))
    return is_untouched and not state.all and noted.isdisjoint(mates)


def _group(names, value, captured, roots, left):
    fields = {"names": list(names)}
    if value is None:
        return {**fields, "live": captured.reason(names)[:500]}
    try:
        blob = pickled({name: roots[name] for name in names})
        if any(captured.walks[name].risky for name in names):
            loaded(blob)
    except BaseException as error:
        return {**fields, "live": f"{name_of(type(error))}: {text_of(error, 200)}"}
    text = _to_base64(blob).decode()
    if len(text) > left:
        return {**fields, "live": f"with it the values of the step are larger than {VALUES_BYTES_MAX} bytes"}
    needs = set().union(*(captured.walks[name].needs for name in names)) - BUILTINS.keys()
    if len(names) > 1:
        fields["alone"] = {name: captured.walks[name].digest.hex() for name in names}
    return {**fields, "value": value, "needs": sorted(needs)[:NAMES_MAX], "blob": text}


def _hidden_groups(before, noted):
    found = []
    noted.add(DECIMAL)
    for name, state in _hidden().items():
        if state == before[name] and not (name == RANDOM and current.state.drew):
            continue
        noted.add(name)
        blob = pickled({name: state})
        value = _sha256(marshalled(state, 2)).hexdigest()
        found.append({"names": [name], "value": value, "needs": [], "blob": _to_base64(blob).decode()})
    return found


def _rehearse():
    """Runs steps when the image is built, so that the interpreter has specialised what every step runs through."""
    saved = sys.stdin, sys.stdout, sys.stderr, sys.argv, {**_modules}, [*sys.path], {**known}, [*held]
    function = "def f(n): return [n, x]\nclass C: k = 1\no = C()\ny = f(1)\ny"
    first = _loads_json(answer(_dumps_json({"id": "a", "source": "x = [1]", "given": [], "seed": "0"})))["groups"][0]
    request = _dumps_json({"id": "b", "source": function, "given": [first], "seed": "1"})
    for _ in range(30):
        answer(request)
    sys.stdin, sys.stdout, sys.stderr, sys.argv, modules, sys.path[:], names, objects = saved
    for old, new in ((_modules, modules), (known, names)):
        old.clear()
        old.update(new)
    held[:] = objects
    current.state = current.namespace = None


_rehearse()
