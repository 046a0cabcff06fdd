"""The tool `notes`: counts words, and keeps short notes in its key-value space."""

from typing import Annotated

from longhaul_sdk import FailedError, Field, Tool, export, function, keyvalue

Name = Annotated[str, Field("the name of the note", min_length=1, max_length=100)]


@export
class Notes(Tool):
    """Counts words and keeps short notes."""

    id = "notes"

    @function(effect="read-only")
    def count(self, text: Annotated[str, "the text to count"]) -> dict[str, int]:
        """Counts the words, lines and characters of a text."""
        lines = text.count("\n") + 1 if text else 0
        return {"words": len(text.split()), "lines": lines, "characters": len(text)}

    @function(effect="idempotent")
    def save(self, name: Name, text: Annotated[str, "what to keep"]) -> dict[str, str]:
        """Keeps a note under a name, in place of the one that has it."""
        keyvalue.set(f"note/{name}", text.encode())
        return {"saved": name}

    @function(effect="read-only")
    def read(self, name: Name) -> dict[str, str]:
        """Gives a note back."""
        text = keyvalue.get(f"note/{name}")
        if text is None:
            raise FailedError(f"there is no note `{name}`")
        return {"text": text.decode()}
