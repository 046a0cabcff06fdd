"""The decorator that makes a class the plugin, and the wall around every export.

No exception passes it: one of `longhaul_sdk.errors` becomes the case of the role, any other
`failed(TypeName: text)` and a traceback in the log. What the plugin returned is converted inside of
the wall, too.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from . import _bindings, _host, _interpreter, errors, jsontext
from ._roles import Role, role_of
from .tool import Tool, describe

T = TypeVar("T", bound=type)

_ERROR_CHARS_MAX = 2_000
_TRACEBACK_CHARS_MAX = 8_000


def export(cls: T) -> T:
    """Makes a class what this component is. Its module is the one that `plugin.toml` names.

    Raises TypeError for a class that cannot be exported, and so when the component is built.
    """
    role = role_of(cls)
    missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    if missing:
        raise TypeError(f"`{cls.__name__}` does not have what its role asks for: {missing}")
    if cls.__name__ == role.export_name:
        raise TypeError(f"the class cannot be called `{cls.__name__}`, as the export of the component is; rename it")
    if issubclass(cls, Tool):
        describe(cls)
    bindings = _host.backend
    if isinstance(bindings, _bindings.Bindings):
        if role.interface not in bindings.roles:
            raise TypeError(f"`{cls.__name__}` is for the world `{role.interface}-plugin`; say so in plugin.toml")
        setattr(sys.modules[cls.__module__], role.export_name, _exports(bindings, role, cls))
    return cls


def dispatch(role: Role, cls: type, name: str, *arguments: Any) -> Any:
    """Calls an export with the classes of this package. Raises nothing but errors.Error."""
    _interpreter.start_call()
    try:
        return role.exports[name](cls, *arguments)
    except errors.Error:
        raise
    except BaseException as error:
        raise _stray(error) from None
    finally:
        _interpreter.end_call()


def _exports(bindings: _bindings.Bindings, role: Role, cls: type) -> type:
    """The class that the bindings look for."""
    protocol = getattr(bindings.exports, role.export_name)
    methods = {name: _exported(bindings, role, cls, name, getattr(protocol, name)) for name in role.exports}
    return type(role.export_name, (), methods)


def _exported(bindings: _bindings.Bindings, role: Role, cls: type, name: str, wanted: Any) -> Callable[..., Any]:
    hint = wanted.__annotations__.get("return")
    where = f"what `{name}` returned"

    def answer(arguments: tuple[Any, ...]) -> Any:
        lifted = [_bindings.lift(argument) for argument in arguments]
        return _bindings.lower(dispatch(role, cls, name, *lifted), hint, where)

    def exported(self: Any, *arguments: Any) -> Any:
        try:
            return answer(arguments)
        except errors.Error as error:
            known = error
        except BaseException as error:
            known = _stray(error)
        # Outside of the handler, so that no traceback keeps the arguments.
        raise bindings.err(_error(bindings, role, known))

    if name == "describe":
        # It depends on the class alone, and not on settings: made when the component is built.
        described = _bindings.lower(role.exports[name](cls, {}), hint, where)
        return lambda self, settings: described
    return exported


def _error(bindings: _bindings.Bindings, role: Role, error: errors.Error) -> Any:
    try:
        return _bindings.lower_error(bindings, role.error_case(error), role.variant, error)
    except BaseException as wrong:
        # An error whose own fields do not fit, such as a limit without a number.
        return _bindings.lower_error(bindings, "Failed", role.variant, _stray(wrong))


def _stray(error: BaseException) -> errors.FailedError:
    """`failed(TypeName: text)`, and a traceback for the log."""
    try:
        sys.stderr.write(jsontext.tail("".join(traceback.format_exception(error)), _TRACEBACK_CHARS_MAX))
    except BaseException:
        # The text of the error is still to come.
        pass
    try:
        text = jsontext.cut(str(error), _ERROR_CHARS_MAX)
    except BaseException:
        text = "it cannot be shown"
    name = type(error).__name__
    said = f"{name}: {text}" if text else name
    advice = _interpreter.advice(error)
    return errors.FailedError(f"{said}; {advice}" if advice else said)
