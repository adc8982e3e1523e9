"""Statements: the lines of a generated function, the names in them, and what has been paid for."""

from __future__ import annotations

from typing import Final

from allot.cel.frame import next_checkpoint
from allot.cel.steps import STRIDE

UNUSED: Final = object()
"""What a binding holds until it is used."""


class UnsupportedError(Exception):
    """The plan does something rare that only the reference knows."""


class UnexpectedError(Exception):
    """Raised by generated code when a value is not what the happy way needs."""


class Statements:
    """A function that is being written."""

    def __init__(self, counts: bool) -> None:
        self._counts = counts
        self._owed = 0
        self._bindings: list[int] = []
        self.lines: list[str] = []
        self.constants: dict[str, object] = {}
        self._names: dict[int, str] = {}
        self._globals: dict[str, str] = {}
        self._indent = 1
        self._temporaries = 0

    # --- writing ---

    def _write(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def _assign(self, expression: str) -> str:
        name = self._temporary()
        self._write(f"{name} = {expression}")
        return name

    def _bound(self, value: object) -> str:
        """The name of a constant. The constants keep every value alive, so that ids stay unique."""
        name = self._names.get(id(value))
        if name is None:
            name = f"k{len(self.constants)}"
            self._names[id(value)] = name
            self.constants[name] = value
        return name

    def _global(self, name: str) -> str:
        """The local name of a variable of the environment, which is looked up at the start."""
        local = self._globals.get(name)
        if local is None:
            local = self._globals[name] = f"g{len(self._globals)}"
            self.lines.insert(0, f"    {local} = v[{self._bound(name)}]")
        return local

    # --- costs ---

    def _owe(self, cost: int) -> None:
        """Note a cost that is known now. It is written when the code branches next."""
        self._owed += cost

    def settle(self) -> None:
        if self._counts and self._owed:
            self._write(f"c += {self._owed}")
        self._owed = 0

    def _ask(self, weight: int = 0) -> None:
        """Ask the deadline if enough was done since, by cost and by weight. `b` says when."""
        if weight:
            self._write(f"b -= {weight}")
        if self._counts:
            self._write("if c > b:")
            self._write(f"    b = {self._bound(next_checkpoint)}(c, m, d)")
        else:
            self._write("if b < 0:")
            self._write("    d()")
            self._write(f"    b = {STRIDE}")

    # --- bindings ---

    def _use_binding(self, slot: int) -> None:
        self._write(f"if s{slot} is {self._bound(UNUSED)}:")
        self._write(f"    s{slot} = f{slot}()")
