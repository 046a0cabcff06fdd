"""The way to the host: the bindings in a component, a scripted host in a unit test, else nothing.

Everything that this package asks of the host goes through `call` and `open_conversation`.
"""

from __future__ import annotations

from typing import Any, Protocol


class RawConversation(Protocol):
    """The resource of the contract, with the classes of this package."""

    def push(self, message: Any, pinned: bool) -> None: ...
    def complete(self, options: Any) -> Any: ...
    def usage(self) -> Any: ...
    def reset(self, summary: str) -> None: ...


class Backend(Protocol):
    """The host that answers."""

    def call(self, interface: str, function: str, *arguments: Any) -> Any: ...
    def open_conversation(self, system: str) -> RawConversation: ...


# Set once when a component is built, and by `longhaul_sdk.testing` while its host is entered.
backend: Backend | None = None


def call(interface: str, function: str, *arguments: Any) -> Any:
    """Calls an import. Raises what the host answered as its error."""
    return _backend(f"{interface}.{function}").call(interface, function, *arguments)


def open_conversation(system: str) -> RawConversation:
    """Opens a context that the host holds."""
    return _backend("conversation").open_conversation(system)


def _backend(what: str) -> Backend:
    if backend is None:
        raise RuntimeError(f"`{what}` is only there in a component; in a unit test write `with testing.Host():`")
    return backend
