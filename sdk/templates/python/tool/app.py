"""The tool `{{name}}`: one function, to begin with."""

from typing import Annotated

from longhaul_sdk import Tool, export, function


@export
class Plugin(Tool):
    """Greets by name."""

    id = "{{name}}"

    # It touches nothing, so it may be repeated. `acts` is for what must not be.
    @function(effect="read-only")
    def greet(self, name: Annotated[str, "whom to greet"]) -> dict[str, str]:
        """Greets somebody by name."""
        return {"greeting": f"Hello, {name}!"}
