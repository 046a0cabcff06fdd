"""Which checks can be judged apart from the work: those whose words do without it.

Decided by the text of a check alone, so that the work has no say in it. A check that looks at files, changes the
interpreter that the work would see, compares what an object is and not what it holds, or asks for a library that is not
known to leave all that alone, is for an interpreter that it shares with the work. Nothing of a check is run here.
"""

import ast
import sys

# Modules of the library that compute, and no more.
_PURE = frozenset(
    """
    __future__ abc array base64 binascii bisect cmath collections colorsys copy csv dataclasses datetime
    difflib enum fractions functools hashlib heapq hmac html itertools json keyword math numbers operator pprint queue
    re reprlib secrets statistics string struct textwrap time types typing unicodedata urllib.parse uuid zlib
    """.split()
)

# Of others, what can be taken from them.
_PARTS = {
    "contextlib": "AbstractContextManager ContextDecorator ExitStack closing contextmanager nullcontext redirect_stderr "
    "redirect_stdout suppress",
    "decimal": "Clamped ConversionSyntax Decimal DecimalException DivisionByZero FloatOperation Inexact "
    "InvalidOperation Overflow ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP "
    "ROUND_UP Rounded Subnormal Underflow",
    "io": "BytesIO StringIO",
    "os": "linesep path pathsep sep",
    "os.path": "abspath basename commonpath commonprefix dirname isabs join normpath sep split splitext",
    "pathlib": "PurePath PurePosixPath PureWindowsPath",
    "pytest": "approx fail fixture importorskip main mark param raises skip",
    "random": "Random SystemRandom choice choices gauss getrandbits randbytes randint random randrange sample shuffle "
    "triangular uniform",
    "sys": "byteorder exit float_info hash_info int_info maxsize maxunicode path platform stderr stdout version "
    "version_info",
    "unittest": "FunctionTestCase TestCase TestSuite expectedFailure main skip skipIf skipUnless",
}
_PARTS = {module: frozenset(names.split()) for module, names in _PARTS.items()}

# Functions of the language that look at more than a value, unless the check has a name of its own like that.
_NAMES = frozenset(
    "__builtins__ __import__ __loader__ __spec__ breakpoint compile eval exec globals help id input locals open type "
    "vars".split()
)

_FIXTURES = frozenset("capfd caplog mocker monkeypatch recwarn request tmp_path tmpdir".split())

_ATTRIBUTES = frozenset(
    """
    __bases__ __builtins__ __closure__ __code__ __dict__ __globals__ __mro__ __subclasses__ __traceback__ __wrapped__
    assertIs assertIsNot assertLogs assertNoLogs assertWarns assertWarnsRegex deprecated_call f_back f_globals f_locals
    mro tb_frame tb_next warns
    """.split()
)


def why_beside(source):
    """Why a check has to be judged beside the work; none when it does not."""
    try:
        tree = ast.parse(source)
        _Shape(tree).visit(tree)
    except _Beside as beside:
        return str(beside)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "it cannot be read"
    return None


class _Beside(Exception):
    pass


class _Shape(ast.NodeVisitor):
    def __init__(self, tree):
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self._own = {node.id for node in names} | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        # Modules of the library by the names that they have in the check.
        self._modules = {}

    def visit_Import(self, node):
        for alias in node.names:
            self._look_at_import(alias.name, node)
            top = alias.name.partition(".")[0]
            if _is_library(top):
                self._modules[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node):
        if node.level:
            raise _Beside(f"its line {node.lineno} imports from around it")
        self._look_at_import(node.module, node)
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            if alias.name == "*" and node.module not in _PURE:
                raise _Beside(f"its line {node.lineno} imports every name of `{node.module}`")
            if node.module in _PARTS and alias.name not in _PARTS[node.module]:
                raise _Beside(f"its line {node.lineno} imports `{whole}`")
            if whole in _PARTS:
                self._modules[alias.asname or alias.name] = whole

    def _look_at_import(self, name, node):
        top = name.partition(".")[0]
        if _is_library(top) and name not in _PURE and name not in _PARTS and top not in _PURE:
            raise _Beside(f"its line {node.lineno} imports `{name}`")

    def visit_Name(self, node):
        if node.id in _NAMES and node.id not in self._own:
            raise _Beside(f"its line {node.lineno} uses `{node.id}`")
        if node.id in self._modules:
            raise _Beside(f"its line {node.lineno} hands the module `{node.id}` on")

    def visit_arg(self, node):
        if node.arg in _FIXTURES:
            raise _Beside(f"its line {node.lineno} uses `{node.arg}`")
        self.generic_visit(node)

    def visit_Attribute(self, node):
        if node.attr in _ATTRIBUTES:
            raise _Beside(f"its line {node.lineno} uses `{node.attr}`")
        module = self._module_of(node.value)
        if module is None:
            self.generic_visit(node)
        elif not isinstance(node.ctx, ast.Load):
            raise _Beside(f"its line {node.lineno} changes `{module}`")
        elif not _is_part(module, node.attr):
            raise _Beside(f"its line {node.lineno} uses `{module}.{node.attr}`")

    def _module_of(self, node):
        """The module of the library that an expression names."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        name = f"{self._module_of(node.value)}.{node.attr}"
        return name if name in _PARTS or name in _PURE else None

    def visit_Call(self, node):
        compares = getattr(node.func, "attr", None) in ("assertIs", "assertIsNot") and any(map(_is_constant, node.args))
        for part in (node.func.value if compares else node.func, *node.args, *node.keywords):
            self.visit(part)

    def visit_Compare(self, node):
        sides = [node.left, *node.comparators]
        for operation, left, right in zip(node.ops, sides, sides[1:]):
            if isinstance(operation, (ast.Is, ast.IsNot)) and not (_is_constant(left) or _is_constant(right)):
                raise _Beside(f"its line {node.lineno} compares what two objects are")
        self.generic_visit(node)

    def _waits(self, node):
        raise _Beside(f"its line {node.lineno} waits for something")

    visit_Await = visit_AsyncFor = visit_AsyncWith = visit_AsyncFunctionDef = _waits


def _is_library(top):
    return top in sys.stdlib_module_names or top == "pytest" or top.startswith("longhaul_")


def _is_part(module, name):
    if module in _PARTS:
        return name in _PARTS[module]
    return module in _PURE or module.partition(".")[0] in _PURE or f"{module}.{name}" in _PURE


def _is_constant(node):
    return isinstance(node, ast.Constant) and any(node.value is one for one in (None, True, False, ...))
