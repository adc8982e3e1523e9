"""Source code of generated functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of Python, indented by the blocks they are in."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def define(self, namespace: dict[str, Any], name: str) -> None:
        """Executes the source, which adds its definitions to the namespace."""
        exec(compile(self.text, name, "exec"), namespace)  # noqa: S102
