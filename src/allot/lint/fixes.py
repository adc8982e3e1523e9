"""Changes that repair a manifest without changing its meaning.

A fix is stated on the object (`RenameKey("spec.cuont", "count")`); `text_edits` makes the change in
the file's text, so that comments and formatting stay.
"""

from __future__ import annotations

from typing import NamedTuple


class RenameKey(NamedTuple):
    """Write another key at this path."""

    path: str
    new: str

    def __str__(self) -> str:
        return f"rename {self.path} to {self.new}"


class ReplaceValue(NamedTuple):
    """Write another string at this path."""

    path: str
    new: str

    def __str__(self) -> str:
        return f'write "{self.new}" at {self.path}'


class MoveUnder(NamedTuple):
    """Move some fields of the object at `path` under a new field of it."""

    path: str
    keys: tuple[str, ...]
    new: str

    def __str__(self) -> str:
        return f"move {', '.join(self.keys)} under {self.new} in {self.path}"


class MoveUp(NamedTuple):
    """Move the fields of the object at `path`.`key` to the object at `path` itself."""

    path: str
    key: str

    def __str__(self) -> str:
        return f"move the fields of {self.key} to {self.path}"


Fix = RenameKey | ReplaceValue | MoveUnder | MoveUp
