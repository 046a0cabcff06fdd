"""Reads the WIT files, and makes the package that `componentize-py` would make of them.

So the tests hold the SDK to the contract and run its whole path in plain Python. What is made has
the shape of the real thing (dataclasses, enums, `Err`), without a component behind it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib.util
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, List, Optional, TypeVar, Union

from longhaul_sdk import _bindings, _host

SDK = Path(__file__).parent.parent
WIT = SDK.parent.parent / "wit" / "v0.1"

_TOKEN = re.compile(r"//[^\n]*|@since\([^)]*\)|%?[a-zA-Z][\w-]*(?::[a-zA-Z][\w-]*/[\w@.-]*)?|->|[{}()<>,:;=.@]|\S")

V = TypeVar("V")


@dataclasses.dataclass
class Interface:
    """The declarations of an interface. A type is a list: its name, and the types in its angle brackets."""

    uses: dict[str, str] = dataclasses.field(default_factory=dict)
    records: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    enums: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    functions: dict[str, tuple[dict[str, Any], Any]] = dataclasses.field(default_factory=dict)
    methods: dict[str, tuple[dict[str, Any], Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class World:
    imports: list[str] = dataclasses.field(default_factory=list)
    exports: list[str] = dataclasses.field(default_factory=list)


@functools.cache
def read() -> tuple[dict[str, Interface], dict[str, World]]:
    """Every interface and every world of the contract."""
    parser = _Parser()
    for path in sorted(WIT.glob("*.wit")):
        parser.read(path.read_text(encoding="utf-8"))
    return parser.interfaces, parser.worlds


def snake(name: str) -> str:
    return name.replace("-", "_")


def pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


class _Parser:
    def __init__(self) -> None:
        self.interfaces: dict[str, Interface] = {}
        self.worlds: dict[str, World] = {}
        self._tokens: list[str] = []

    def read(self, text: str) -> None:
        found = [token for token in _TOKEN.findall(text) if not token.startswith(("//", "@since"))]
        self._tokens = found[::-1]
        while self._tokens:
            word = self._next()
            if word == "interface":
                self._interface()
            elif word == "world":
                self._world()

    def _next(self, *expected: str) -> str:
        token = self._tokens.pop()
        assert not expected or token in expected, f"`{token}` where {expected} was to be"
        return token

    def _peek(self) -> str:
        return self._tokens[-1]

    def _interface(self) -> None:
        made = self.interfaces[self._next()] = Interface()
        self._next("{")
        while (word := self._next()) != "}":
            if word == "use":
                source = self._next()
                self._next(".")
                made.uses.update({name: source for name in self._list("{", "}", self._next)})
                self._next(";")
            elif word == "type":
                while self._next() != ";":
                    pass
            elif word == "record":
                name = self._next()
                made.records[name] = dict(self._list("{", "}", self._field))
            elif word == "enum":
                name = self._next()
                made.enums[name] = self._list("{", "}", self._next)
            elif word == "variant":
                name = self._next()
                made.variants[name] = dict(self._list("{", "}", self._case))
            elif word == "resource":
                self._resource(made)
            else:
                made.functions[word.lstrip("%")] = self._function()

    def _resource(self, made: Interface) -> None:
        self._next()
        self._next("{")
        while (word := self._next()) != "}":
            if word == "constructor":
                self._list("(", ")", self._field)
                self._next(";")
            else:
                made.methods[word] = self._function()

    def _function(self) -> tuple[dict[str, Any], Any]:
        self._next(":")
        self._next("func")
        parameters = dict(self._list("(", ")", self._field))
        result = None
        if self._peek() == "->":
            self._next()
            result = self._type()
        self._next(";")
        return parameters, result

    def _list(self, start: str, end: str, item: Callable[[], V]) -> list[V]:
        self._next(start)
        made = []
        while self._peek() != end:
            made.append(item())
            if self._peek() == ",":
                self._next()
        self._next(end)
        return made

    def _field(self) -> tuple[str, Any]:
        name = self._next().lstrip("%")
        self._next(":")
        return name, self._type()

    def _case(self) -> tuple[str, Any]:
        name = self._next()
        return name, self._list("(", ")", self._type)[0] if self._peek() == "(" else None

    def _type(self) -> list[Any]:
        name = self._next()
        return [name, *(self._list("<", ">", self._type) if self._peek() == "<" else [])]

    def _world(self) -> None:
        made = self.worlds[self._next()] = World()
        self._next("{")
        while (word := self._next()) != "}":
            name = self._next()
            self._next(";")
            if word != "include" and not name.startswith("wasi:"):
                (made.imports if word == "import" else made.exports).append(name)


# The package `wit_world`.


@dataclasses.dataclass
class Ok(Generic[V]):
    value: V


@dataclasses.dataclass(frozen=True)
class Err(Generic[V], Exception):
    value: V


class Component:
    """A world as a plugin in Python finds it, with `host` as the other side of its imports."""

    def __init__(self, world: str) -> None:
        self.interfaces, worlds = read()
        self.world = worlds[world]
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        # The answer of each import, by `interface.function`; an exception is raised.
        self.answers: dict[str, Any] = {}
        self.modules: dict[str, types.ModuleType] = {}
        self._types_name = "longhaul_plugin_types" if world in ("tool-plugin", "memory-plugin") else "types"
        # Enough for every interface; the generator leaves out what a world does not reach.
        for name in ("types", "message-types", "tool-types"):
            self._add("imports", name)
        for name in self.world.imports:
            self._add("imports", name)
        for name in self.world.exports:
            self._add("exports", name)
        shared = types.ModuleType("componentize_py_types")
        shared.Ok, shared.Err = Ok, Err  # type: ignore[attr-defined]
        self.modules["componentize_py_types"] = shared
        for name in ("wit_world", "wit_world.imports", "wit_world.exports"):
            self.modules[name] = types.ModuleType(name)
        for name in self.world.exports:
            protocol = type(pascal(name), (), dict(self._functions(name, self.interfaces[name].functions)))
            setattr(self.modules["wit_world.exports"], pascal(name), protocol)

    def named(self, name: str) -> Any:
        """A generated type."""
        for module in self.modules.values():
            if hasattr(module, name):
                return getattr(module, name)
        raise KeyError(name)

    def _add(self, kind: str, name: str) -> None:
        path = f"wit_world.{kind}.{self._types_name if name == 'types' else snake(name)}"
        if path in self.modules:
            return
        module = self.modules[path] = types.ModuleType(path)
        interface = self.interfaces[name]
        for enum_name, cases in interface.enums.items():
            members = {snake(case).upper(): at for at, case in enumerate(cases)}
            setattr(module, pascal(enum_name), enum.Enum(pascal(enum_name), members))
        # A record may use one that comes later: tried until all are made.
        waiting = [*interface.records.items(), *interface.variants.items()]
        while waiting:
            type_name, fields = waiting.pop(0)
            try:
                self._add_type(module, name, type_name, fields)
            except KeyError:
                waiting.append((type_name, fields))
        for function_name, function in self._functions(name, interface.functions):
            setattr(module, function_name, function)
        if interface.methods:
            setattr(module, "Conversation", self._resource(name, interface))

    def _add_type(self, module: types.ModuleType, interface: str, name: str, fields: dict[str, Any]) -> None:
        if name in self.interfaces[interface].records:
            hints = [(snake(field), self._hint(kind, interface)) for field, kind in fields.items()]
            setattr(module, pascal(name), dataclasses.make_dataclass(pascal(name), hints))
            return
        cases = []
        for case, kind in fields.items():
            hints = [] if kind is None else [("value", self._hint(kind, interface))]
            cases.append(dataclasses.make_dataclass(f"{pascal(name)}_{pascal(case)}", hints))
        for made in cases:
            setattr(module, made.__name__, made)
        setattr(module, pascal(name), Union[tuple(cases)])

    def _functions(self, interface: str, functions: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
        for name, (parameters, result) in functions.items():
            path = f"{interface}.{name}"

            def call(*arguments: Any, _path: str = path) -> Any:
                return self._call(_path, arguments)

            hints = {snake(parameter): self._hint(kind, interface) for parameter, kind in parameters.items()}
            call.__annotations__ = {**hints, "return": self._result(result, interface)}
            yield snake(name), call

    def _resource(self, interface: str, declared: Interface) -> type:
        def start(this: Any, system: str) -> None:
            self._call(f"{interface}.new", (system,))

        members: dict[str, Any] = {"__init__": start}
        for name, function in self._functions(interface, declared.methods):

            def method(this: Any, *arguments: Any, _function: Any = function) -> Any:
                return _function(*arguments)

            method.__annotations__ = function.__annotations__
            members[name] = method
        return type("Conversation", (), members)

    def _call(self, path: str, arguments: tuple[Any, ...]) -> Any:
        self.calls.append((path, arguments))
        answer = self.answers.get(path)
        if isinstance(answer, BaseException):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    def _result(self, kind: Any, interface: str) -> Any:
        if kind is None or kind == ["result", ["_"]]:
            return None
        if kind[0] == "result":
            return None if kind[1] == ["_"] else self._hint(kind[1], interface)
        return self._hint(kind, interface)

    def _hint(self, kind: list[Any], interface: str) -> Any:
        name, *inner = kind
        plain = {"string": str, "json": str, "bool": bool, "u32": int, "s32": int, "f32": float, "f64": float}
        if name in plain:
            return plain[name]
        if name == "list":
            return bytes if inner[0] == ["u8"] else List[self._hint(inner[0], interface)]  # type: ignore[misc]
        if name == "option":
            return Optional[self._hint(inner[0], interface)]
        if name == "result":
            return Union[Ok[self._hint(inner[0], interface)], Err[self._hint(inner[1], interface)]]  # type: ignore[misc]
        home = self.interfaces[interface].uses.get(name, interface)
        for kind_of_module in ("imports", "exports"):
            path = f"wit_world.{kind_of_module}.{self._types_name if home == 'types' else snake(home)}"
            if hasattr(self.modules.get(path), pascal(name)):
                return getattr(self.modules[path], pascal(name))
        raise KeyError(name)


@contextlib.contextmanager
def component(world: str) -> Iterator[Component]:
    """While it is entered, the SDK finds itself in a component of this world."""
    made = Component(world)
    sys.modules.update(made.modules)
    _bindings._lowerer.cache_clear()
    outer, _host.backend = _host.backend, _bindings.Bindings()
    try:
        yield made
    finally:
        _host.backend = outer
        _bindings._lowerer.cache_clear()
        for name in made.modules:
            del sys.modules[name]


def example(kind: str) -> types.ModuleType:
    """The example of a role, loaded anew."""
    path = SDK / "examples" / kind / "app.py"
    spec = importlib.util.spec_from_file_location(f"example_{kind}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
