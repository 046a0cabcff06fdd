"""Reads the sections of WebAssembly files: what a module imports and exports, and the modules of a component.

It checks nothing: what it reads was written by the tools of the same build.
"""

FUNCTION, TABLE, MEMORY, GLOBAL = range(4)

_CUSTOM, _IMPORTS, _EXPORTS = 0, 2, 7
_COMPONENTS_CORE_MODULE = 1


def modules(component):
    """The core modules of a component that was linked of shared libraries."""
    return [body for kind, body in _sections(component) if kind == _COMPONENTS_CORE_MODULE]


def is_library(module):
    """True for a shared library: it says how much memory it takes."""
    return any(kind == _CUSTOM and _name(body, 0)[0] == "dylink.0" for kind, body in _sections(module))


def exports(module):
    """The names that a module exports."""
    found = set()
    for kind, body in _sections(module):
        if kind == _EXPORTS:
            count, at = _number(body, 0)
            for _ in range(count):
                name, at = _name(body, at)
                _, at = _number(body, at + 1)
                found.add(name)
    return found


def imports(module):
    """The module and the name of each import."""
    found = []
    for kind, body in _sections(module):
        if kind == _IMPORTS:
            count, at = _number(body, 0)
            for _ in range(count):
                source, at = _name(body, at)
                name, at = _name(body, at)
                at = _after_type(body, at)
                found.append((source, name))
    return found


def _after_type(body, at):
    kind, at = body[at], at + 1
    if kind == GLOBAL:
        return at + 2
    if kind == FUNCTION:
        return _number(body, at)[1]
    at += kind == TABLE
    has_most, at = body[at] & 1, at + 1
    for _ in range(1 + has_most):
        _, at = _number(body, at)
    return at


def _sections(data):
    at = 8
    while at < len(data):
        length, start = _number(data, at + 1)
        yield data[at], data[start : start + length]
        at = start + length


def _name(data, at):
    length, at = _number(data, at)
    return data[at : at + length].decode(), at + length


def _number(data, at):
    """A number of variable length, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
