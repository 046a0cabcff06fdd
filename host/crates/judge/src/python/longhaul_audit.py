"""Rewrites test files so that a pass can be told from a pretence of one, without running any of them.

Every test gets a random name. Beside it come twins: the same test with an expected value changed nearby, which must
fail. Canaries must fail too. Which name is which only the host knows. What is changed is for `longhaul_twins` to find; a test
in which it finds nothing gets a failing assertion instead, which still shows whether failures are reported.

Whether a test may be skipped, and whether it asks for its own name, is read from its text and from that of what it uses:
fixtures, set-ups, decorators and helpers of the same file, and of files that are those of the base commit.
"""

import ast
import os
import random
import re

from longhaul_twins import Edits, Source, changed, failing_assertion, is_source, shared_out

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


# What skips a test, and what asks for the name of one.
_SKIP = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
_OWN_NAME = re.compile(
    r"\bnode\.(name|originalname)\b|\bnodeid\b|\b_testMethod(Name|Doc)\b|\bself\.id\(\)|\bPYTEST_CURRENT_TEST\b|\bco_name\b"
    r"|\brequest\.function\b|\bapprovaltests\b")
# Fixtures of well-known plugins that do.
_OF_PLUGINS = re.compile(r"snapshot|\w+_regression")

# What runs before a test, unasked.
_SETUPS = {"setUp", "asyncSetUp", "setUpClass", "setUpModule", "setup", "setup_method", "setup_class", "setup_function",
           "setup_module"}


def prepared(plan, collected):
    """The record of a preparation: what is expected, and the files of the audit."""
    files = {path: _File(path, _read(path)) for path in plan["test_files"]}
    files = {path: file for path, file in files.items() if file.tree is not None}
    sure = {*plan["same"], *(path for path in plan["kept"] if path.endswith(".py"))}
    sources = [*files.values(), *(_File(path, _read(path)) for path in sorted(sure - {*files}))]
    skipping, naming = _Uses(sources, sure, _SKIP), _Uses(sources, sure, _OWN_NAME, _OF_PLUGINS)
    events = [event for event in collected["events"] if "id" in event]
    told = next((event for event in collected["events"] if "args" in event), {"args": []})
    broken = [event["broken"] for event in collected["events"] if "broken" in event]
    is_collected = collected["broken"] is None
    counts, skips, named = {}, set(), set()
    for event in {event["id"]: event for event in events}.values():
        name = event["id"].split("[")[0]
        counts[name] = counts.get(name, 0) + 1
        path = name.split("::")[0]
        if event["skips"] or skipping.of_fixtures(path, event["fixtures"]):
            skips.add(name)
        if naming.of_fixtures(path, event["fixtures"]):
            named.add(name)
    by_tree = {test.id: test for file in files.values() for test in file.tests}
    for test in by_tree.values():
        test.may_skip = skipping.of(test)
        test.asks_for_its_name = naming.of(test) or test.id in named
    # By the file and the last name: a class may have its tests from another one, of another file too.
    may_skip = {_short(test.id) for test in by_tree.values() if test.may_skip}
    elsewhere, own = {last for _, last in may_skip}, {_short(name) for name in by_tree}
    skips.update(name for name in {*counts, *by_tree} if _short(name) in may_skip
                 or _short(name) not in own and _short(name)[1] in elsewhere)
    likely = [name for name, test in by_tree.items() if test.is_collected]
    if not is_collected:
        counts = {name: 1 for name in likely}
    for path in broken:
        counts.update({name: 1 for name in likely if name.startswith(path + "::") and name not in counts})
    base = {path: _File(path, text) for path, text in plan["base_files"].items()}
    audit = _audit(plan, files)
    audit.update(
        expected=counts, skips=sorted(skips), args=told["args"],
        base_count=sum(len(file.tests) for file in base.values() if file.tree is not None),
        count=sum(len(files[path].tests) for path in {*base, *plan["new_files"]} if path in files),
    )
    return audit


class _Uses:
    """Finds out whether a word is in the text of a test, or in that of anything it uses.

    What a file does not define itself comes from files that the work cannot have changed.
    """

    def __init__(self, sources, sure, word, fixtures=None):
        self._word, self._of_plugins, self._holds, self._targets = word, fixtures, {}, {}
        self._scopes = {source.path: _Scope(source) for source in sources if source.tree is not None}
        self._modules, self._fixtures = {}, {}
        for scope in (self._scopes[path] for path in sorted(sure) if path in self._scopes):
            self._modules.setdefault(scope.module, []).append(scope)
            for name, node in scope.fixtures.items():
                self._fixtures.setdefault(name, []).append((scope, node))

    def of(self, test):
        """Whether it holds of a test: of itself, of its classes, and of what its file sets up."""
        scope = self._scopes[test.file.path]
        return any(self._leads((scope, node)) for node in (test.node, *test.owners, *test.file.setups))

    def of_fixtures(self, path, names):
        """Whether it holds of fixtures that a test of a file has."""
        return any(self._leads(target) for name in names for target in self._fixture(self._scopes.get(path), name))

    def _leads(self, start):
        seen, todo = {id(start[1])}, [start]
        while todo:
            scope, node = todo.pop()
            known = self._holds.get(id(node))
            if known or known is None and self._has_word(scope, node):
                self._holds[id(start[1])] = True
                return True
            for target in self._uses(scope, node) if known is None else ():
                if id(target[1]) not in seen:
                    seen.add(id(target[1]))
                    todo.append(target)
        self._holds.update(dict.fromkeys(seen, False))
        return False

    def _has_word(self, scope, node):
        if isinstance(node, ast.ClassDef):
            return False
        texts = (scope.source.source_of(one) for one in (node, *getattr(node, "decorator_list", [])))
        if any(map(self._word.search, texts)):
            return True
        parameters = [one.arg for one in ast.walk(node) if isinstance(one, ast.arg)] if self._of_plugins else []
        return any(map(self._of_plugins.fullmatch, parameters)) if parameters else False

    def _uses(self, scope, node):
        """What a part of a file uses, each with the file that it is in."""
        if id(node) not in self._targets:
            self._targets[id(node)] = list(self._found(scope, node))
        return self._targets[id(node)]

    def _found(self, scope, node):
        if isinstance(node, ast.ClassDef):
            parts = (*node.decorator_list, *node.bases, *filter(_is_setup, node.body))
            yield from ((scope, part) for part in parts)
            return
        for one in ast.walk(node):
            if isinstance(one, ast.Name):
                yield from self._named(scope, one.id)
            elif isinstance(one, ast.arg):
                yield from self._fixture(scope, one.arg)
            elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                yield from self._part(scope, one.value.id, one.attr)

    def _named(self, scope, name):
        if name in scope.names:
            return [(scope, node) for node in scope.names[name]]
        modules = [scope.imported[name]] if name in scope.imported else [(module, name) for module in scope.stars]
        return [target for module, name in modules for target in self._of_module(module, name)]

    def _of_module(self, module, name):
        return [(scope, node) for scope in self._modules.get(module, ()) for node in scope.names.get(name, ())]

    def _part(self, scope, owner, name):
        """What belongs to the test itself, or to a module."""
        if owner in ("self", "cls"):
            if name in scope.methods:
                return [(scope, node) for node in scope.methods[name]]
            modules = {module for module, _ in scope.imported.values()}.union(scope.stars)
            scopes = [one for module in modules for one in self._modules.get(module, ())]
            return [(one, node) for one in scopes for node in one.methods.get(name, ())]
        module, inner = scope.imported.get(owner, (None, None))
        return self._of_module(inner or module, name)

    def _fixture(self, scope, name):
        if scope and name in scope.fixtures:
            return [(scope, scope.fixtures[name])]
        return self._fixtures.get(name, [])


class _Scope:
    """What a file defines and imports, by name."""

    def __init__(self, source):
        self.source = source
        self.module = os.path.splitext(os.path.basename(source.path))[0]
        self.names, self.methods, self.fixtures, self.imported, self.stars = {}, {}, {}, {}, []
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        for node in source.tree.body:
            for name in _given(node):
                self.names.setdefault(name, []).append(node)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    for name in _given(part):
                        self.methods.setdefault(name, []).append(part)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
            if isinstance(node, functions) and _is_fixture(node):
                self.fixtures[_fixture_name(node)] = node

    def _import(self, node):
        module = (getattr(node, "module", None) or "").rpartition(".")[2]
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            elif isinstance(node, ast.Import):
                self.imported[alias.asname or alias.name] = alias.name.rpartition(".")[2], None
            else:
                self.imported[alias.asname or alias.name] = module, alias.name


def _given(node):
    """Names that a statement gives to functions, classes and values."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _fixture_name(node):
    named = (keyword.value for decorator in node.decorator_list for keyword in getattr(decorator, "keywords", ())
             if keyword.arg == "name" and isinstance(keyword.value, ast.Constant))
    return next((value.value for value in named), node.name)


def _is_test(node):
    return node.name.startswith("test") and not _is_fixture(node) and not isinstance(node, ast.ClassDef)


def _is_fixture(node):
    return any("fixture" in ast.dump(decorator) for decorator in node.decorator_list)


def _is_setup(node):
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    if isinstance(node, ast.Assign):
        return any(getattr(target, "id", "") == "pytestmark" for target in node.targets)
    return is_function and (node.name in _SETUPS or any("autouse" in ast.dump(one) for one in node.decorator_list))


def watched(paths):
    """Literals of modules that must stay, by file and name; `repr` of each."""
    files = {path: _File(path, _read(path)) for path in paths}
    files = {path: file for path, file in files.items() if file.tree is not None}
    changing = {name for file in files.values() for name in _changing(file.tree)}
    found = {}
    for path, file in files.items():
        for node in file.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                try:
                    value = ast.literal_eval(node.value)
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    continue
                name = node.targets[0].id
                # Tests fill lists and dictionaries that start empty. The order of a set is nobody's.
                if value not in ([], {}, None) and not isinstance(value, (set, frozenset)) and name not in changing:
                    found.setdefault(path, {})[name] = repr(value)
    return found


_MUTATING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
             "sort", "update", "__setitem__"}


def _changing(tree):
    """Names that a file gives more than one value, or whose value it changes."""
    given = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield _last(node.value)
        elif isinstance(node, ast.AugAssign):
            yield _last(node.target)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATING:
            yield _last(node.func.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
    for node in _of_module(tree):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "asname", None) or node.name
        given[name] = given.get(name, 0) + 1
    yield from (name for name, times in given.items() if times > 1)


def _of_module(tree):
    """What gives names of a module a value: not what stands in a function."""
    for node in tree.body if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.alias)):
            yield node
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _of_module(node)


def _last(node):
    """The last name of what is changed."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", getattr(node, "id", None))


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
              if (test.id in passed or _short(test.id) in inherited and not test.may_skip)
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


class _Test:
    def __init__(self, file, node, owners):
        self.file, self.node, self.owners = file, node, owners
        self.id = "::".join([file.path, *(owner.name for owner in owners), node.name])
        first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
        self.lines = (first - 1, node.end_lineno)
        self.may_skip = self.asks_for_its_name = False
        # Its place among those that are run in the order of their names.
        self.place = 0

    @property
    def is_method(self):
        return bool(self.owners)

    @property
    def is_collected(self):
        """Whether it may well be a test, and no function of a helper."""
        return all(owner.bases or owner.name.startswith("Test") for owner in self.owners)


class _File(Source):
    def __init__(self, path, text):
        super().__init__(text)
        self.path = path
        self.setups, self.tests, self.imports, self._bases = [], [], {}, set()
        if self.tree is not None:
            self._look()

    def _look(self):
        self.setups = list(filter(_is_setup, self.tree.body))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.imports.update({alias.name: True for alias in node.names})
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imports[node.module] = True
            elif isinstance(node, ast.ClassDef):
                self._bases.update(getattr(base, "id", getattr(base, "attr", "")) for base in node.bases)
        self._collect(self.tree.body, [])
        for place, test in enumerate(sorted(self.tests, key=lambda one: one.node.name)):
            test.place = place

    def _collect(self, body, owners):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_test(node):
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
                variants = [_variant(test, None, names, "named" if test.asks_for_its_name else "real")]
                if id(test) in with_twins:
                    variants += _twins(test, twins, names)
                _random.shuffle(variants)
                block = b"\n".join(variants)
            elif self.is_rewritable(test) and test.is_collected:
                # It is not audited this time.
                block = lines[first][:len(lines[first]) - len(lines[first].lstrip())] + b"pass\n"
            else:
                continue
            lines[first:last] = [block]
        is_of_unittest = all(test.is_method for test in tests)
        lines.append(_canaries(names, is_of_unittest))
        return b"".join(lines).decode()


def _name(names, kind, test=None):
    # Methods are run in the order of their names.
    place = "%04d_" % test.place if test and test.is_method else ""
    while True:
        name = "test_%s%s_%s_%04x" % (place, *_random.sample(_WORDS, 2), _random.randrange(1 << 16))
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
    return _changed(test, [_rename(test, _name(names, kind, test)), *([edit] if edit else [])])


def _changed(test, edits):
    first, last = test.lines
    edits = [((line - first, column, end - first, to), text) for (line, column, end, to), text in edits]
    return changed(test.file.lines[first:last], edits)


def _rename(test, name):
    line = test.file.lines[test.node.lineno - 1]
    found = re.compile(rb"(async\s+)?def\s+").match(line, test.node.col_offset)
    return (test.node.lineno, found.end(), test.node.lineno, found.end() + len(test.node.name.encode())), name.encode()


def _twins(test, count, names):
    edits = [edit for edit in shared_out(Edits(test.file, test.node).found(), count) if is_source(_changed(test, [edit]))]
    for edit in edits or [_failing_line(test)]:
        yield _variant(test, edit, names, "named_twin" if test.asks_for_its_name else "twin")


def _failing_line(test):
    body = test.node.body
    is_documented = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant)
    at = body[1] if is_documented and len(body) > 1 else body[0]
    line = min([at.lineno] + [decorator.lineno for decorator in getattr(at, "decorator_list", [])])
    indent = test.file.lines[line - 1][:at.col_offset]
    return (line, 0, line, 0), indent + failing_assertion()
