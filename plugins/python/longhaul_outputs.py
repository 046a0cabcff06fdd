"""Typed results of a source, as in a notebook: its last expression, what `display` was given, and open figures.

A value is one output: a picture (PNG, SVG) or a table where it says how to be shown, JSON where it is plain data, and
the text of its `repr` otherwise. HTML is left out: whoever shows it would run it. Used by the interpreter in
WebAssembly and by the machine's own, so it imports nothing but the library. It bounds what it keeps; the host, which
trusts none of it, does so again.
"""

import ast
import base64
import io
import json
import math
import sys

# Outputs of one source, and bytes of all of them as JSON, with the values and keys in them: the host holds each of them.
OUTPUTS_MAX = 100
BYTES_MAX = 8 << 20
VALUES_MAX = 400_000
# Rows and columns of a table, and characters of a cell that is no plain value.
ROWS_MAX, COLUMNS_MAX, CELL_CHARACTERS_MAX = 1_000, 100, 1_000
TEXT_CHARACTERS_MAX = 100_000
# Levels of plain data.
NESTING_MAX = 50
# What every reader of JSON keeps exactly.
_INT_MAX = 1 << 53

# Kept before any source runs, which may put something else in their places.
_dumps, _loads, _encode = json.dumps, json.loads, base64.b64encode


class Outputs:
    """The outputs of one source, in order."""

    def __init__(self, write=None):
        """`write` gets each output at once, as a line of JSON; without it they are kept."""
        self.kept, self.dropped = [], 0
        self._write, self._count, self._bytes_left, self._values_left = write, 0, BYTES_MAX, VALUES_MAX
        self._shown_figures = []

    def display(self, *values):
        """Shows each value as an output of its own."""
        for value in values:
            self._add(self._output_of(value))

    def show_result(self, value):
        """The value of the last expression; `None` is none."""
        if value is not None:
            self.display(value)

    def show_figures(self):
        """The figures of matplotlib that are open and were not shown."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if not any(figure is shown for shown in self._shown_figures):
                self._add(_png_of_figure(figure))
        pyplot.close("all")

    def _output_of(self, value):
        if _is_figure(value):
            self._shown_figures.append(value)
        return output_of(value)

    def _add(self, output):
        line, values = _dumps(output), _values_in(output)
        if self._count >= OUTPUTS_MAX or len(line) > self._bytes_left or values > self._values_left:
            self.dropped += 1
            return
        self._count += 1
        self._bytes_left -= len(line)
        self._values_left -= values
        if self._write is None:
            # A copy: the source may change what it has shown.
            self.kept.append(_loads(line))
        else:
            self._write(line)


def split(source, name):
    """The code of a source, and that of its last expression; none where it ends otherwise."""
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return compile(tree, name, "exec", dont_inherit=True), None
    tree.body.pop()
    body = compile(tree, name, "exec", dont_inherit=True)
    flags = body.co_flags & _FUTURE
    return body, compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True)


def _flags_of_futures():
    import __future__

    flags = 0
    for name in __future__.all_feature_names:
        flags |= getattr(__future__, name).compiler_flag
    return flags


_FUTURE = _flags_of_futures()


def run(source, name, namespace, outputs):
    """Runs a source with `display`, and shows its last expression. Errors are the caller's."""
    body, last = split(source, name)
    exec(body, namespace)
    if last is not None:
        outputs.show_result(eval(last, namespace))


def output_of(value):
    """One value as one output. Whatever a value's own methods do, it is shown in some way."""
    for make in (_picture, _table, _plain):
        try:
            output = make(value)
        except Exception:
            continue
        if output is not None:
            return output
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}> (its repr raised {type(error).__name__})"
    return {"kind": "text", "text": _cut(text, TEXT_CHARACTERS_MAX)}


def _cut(text, characters_max):
    # Half a pair of surrogates has no place in UTF-8.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= characters_max else text[:characters_max] + "..."


# Pictures.


def _picture(value):
    if isinstance(value, type):
        return None
    if _is_figure(value):
        return _png_of_figure(value)
    for name, make in (("_repr_png_", _png), ("_repr_svg_", _svg)):
        method = getattr(value, name, None)
        data = method() if callable(method) else None
        if isinstance(data, tuple):
            # Data with metadata about it.
            data = data[0]
        if data is not None:
            return make(data)
    return None


def _png(data):
    text = data if isinstance(data, str) else _encode(bytes(data)).decode()
    return {"kind": "png", "base64": "".join(text.split())}


def _svg(data):
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
    return {"kind": "svg", "text": text.encode("utf-8", "replace").decode()}


def _is_figure(value):
    """Whether it is a figure of matplotlib, which is not imported for the question."""
    figures = sys.modules.get("matplotlib.figure")
    return figures is not None and isinstance(value, figures.Figure)


def _png_of_figure(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return _png(file.getvalue())


# Tables: by what they can do, so that no library has to be imported.


def _table(value):
    if isinstance(value, type) or not hasattr(value, "columns"):
        return None
    if callable(getattr(value, "itertuples", None)):
        rows = value.itertuples(index=False, name=None)
    elif callable(getattr(value, "iter_rows", None)):
        rows = value.iter_rows()
    else:
        return None
    columns = [_cut(str(name), CELL_CHARACTERS_MAX) for name in value.columns][:COLUMNS_MAX]
    kept = []
    for row in rows:
        if len(kept) == ROWS_MAX:
            break
        kept.append([_cell(cell) for cell in list(row)[: len(columns)]])
    return {"kind": "table", "columns": columns, "rows": kept, "rows_total": len(value)}


def _cell(value):
    # Numbers of numpy are none of Python's.
    item = getattr(value, "item", None)
    if callable(item) and not isinstance(value, (str, bytes)):
        try:
            value = item()
        except Exception:
            pass
    if type(value) is float and math.isnan(value):
        return None
    if type(value) is str:
        return _cut(value, CELL_CHARACTERS_MAX)
    return value if _is_scalar(value) else _cut(str(value), CELL_CHARACTERS_MAX)


# Plain data.


def _plain(value):
    if not _is_plain(value, NESTING_MAX):
        return None
    return {"kind": "json", "value": value}


def _values_in(value):
    """The number of values and keys."""
    if type(value) is dict:
        return 1 + len(value) + sum(map(_values_in, value.values()))
    return 1 + sum(map(_values_in, value)) if type(value) is list else 1


def _is_scalar(value):
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is int:
        return -_INT_MAX <= value <= _INT_MAX
    return kind is float and math.isfinite(value)


def _is_plain(value, left):
    kind = type(value)
    if kind is str:
        return value.isascii() or not any("\ud800" <= mark <= "\udfff" for mark in value)
    if kind is not list and kind is not dict:
        return _is_scalar(value)
    if left == 0:
        return False
    if kind is dict:
        if not all(type(key) is str and _is_plain(key, 1) for key in value):
            return False
        value = value.values()
    return all(_is_plain(part, left - 1) for part in value)
