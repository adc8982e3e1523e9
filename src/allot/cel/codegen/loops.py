"""Loops and bindings: macros such as `all` and `map`, and `cel.bind`."""

from __future__ import annotations

from collections.abc import Iterator

from allot.cel.codegen.expressions import Expressions
from allot.cel.codegen.statements import UNUSED
from allot.cel.plan import Bind, Const, Fold
from allot.cel.values import Value, from_key, iterate
from allot.cel.weights import weight_of_iteration


class Loops(Expressions):
    """Writes loops and bindings."""

    def _fold(self, node: Fold) -> str:
        values = self.value(node.range)
        accumulator = f"s{node.accumulator}"
        if node.collects is None:
            self._write(f"{accumulator} = {self.value(node.initial)}")
        else:
            self._write(f"{accumulator} = {node.collects.__name__}()")
        self.settle()
        if node.variable2 is None:
            self._write(f"for s{node.variable} in {self._bound(iterate)}({values}):")
        else:
            pairs = f"{self._bound(_pairs)}({values})"
            self._write(f"for s{node.variable}, s{node.variable2} in {pairs}:")
        self._indent += 1
        if not (isinstance(node.condition, Const) and node.condition.value is True):
            condition = self.value(node.condition)
            self.settle()
            self._write(f"if not {condition}:")
            self._write("    break")
        self._write(f"{accumulator} = {self.value(node.step)}")
        self.settle()
        self._check_deadline(weight_of_iteration(node))
        self._indent -= 1
        return self.value(node.result)

    def _bind(self, node: Bind) -> str:
        """Computed at once; if costs are counted, by a function that is called on first use."""
        if not self._counts:
            self._write(f"s{node.slot} = {self.value(node.initial)}")
            return self.value(node.result)
        self.settle()
        self._write(f"s{node.slot} = {self._bound(UNUSED)}")
        self._write(f"def f{node.slot}():")
        self._indent += 1
        changed = ["c", "b", *(f"s{slot}" for slot in self._bindings)]
        self._write(f"nonlocal {', '.join(changed)}")
        initial = self.value(node.initial)
        self.settle()
        self._write(f"return {initial}")
        self._indent -= 1
        self._bindings.append(node.slot)
        result = self.value(node.result)
        self._bindings.pop()
        return result


def _pairs(values: Value) -> Iterator[tuple[Value, Value]]:
    """Index and element, or key and value."""
    if isinstance(values, dict):
        return ((from_key(key), value) for key, value in values.items())
    return enumerate(iterate(values))
