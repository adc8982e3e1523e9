"""Statements: the lines of a generated function, their names, and the cost counted so far."""

from __future__ import annotations

from typing import Final

from allot.cel.frame import next_checkpoint
from allot.cel.steps import STRIDE

UNUSED: Final = object()
"""The value of a binding before its first use."""


class UnsupportedError(Exception):
    """The plan has a rare construct that only the reference evaluates."""


class UnexpectedError(Exception):
    """Raised by generated code if a value has an unexpected type."""


class Statements:
    """The source of a function while it is generated."""

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
        """Adds a known cost. It is written before the next branch."""
        self._owed += cost

    def settle(self) -> None:
        if self._counts and self._owed:
            self._write(f"c += {self._owed}")
        self._owed = 0

    def _check_deadline(self, weight: int = 0) -> None:
        """Writes a check of the deadline, due by cost and by weight. `b` holds when it is due."""
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
