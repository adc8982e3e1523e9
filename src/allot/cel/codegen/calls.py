"""Calls: functions and operators, their cost, and inlined Python operators."""

from __future__ import annotations

from typing import Final

from allot.cel import costs
from allot.cel.codegen.expressions import Expressions
from allot.cel.codegen.statements import UnexpectedError
from allot.cel.constants import quickly_known
from allot.cel.plan import Const, Fixed, Invoke, OptionalOr
from allot.cel.values import Optional

_COMPARISONS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_SIMPLE_CLASSES: Final = (str, int)


class Calls(Expressions):
    """Writes calls."""

    def _invoke(self, node: Invoke) -> str:
        match node.function:
            case "@not_strictly_false":
                self._owe(1)
                return self._assign(f"{self.value(node.arguments[0])} is not False")
            case "!_":
                self._owe(1)
                return self._assign(f"not {self._decision(node.arguments[0])}")
        arguments = [self.value(argument) for argument in node.arguments]
        cost_of = costs.call_cost(node.function, node.overload_id)
        if cost_of is None:
            self._owe(1)
        elif not costs.goes_by_result(cost_of):
            self._pay_for_call(cost_of, arguments, "None")
        passed = ["d", *arguments] if node.takes_deadline else arguments
        call = f"{self._bound(node.implementation)}({', '.join(passed)})"
        direct = self._direct(node, arguments)
        result = self._assign(f"{direct} else {call}" if direct else call)
        if cost_of is not None and costs.goes_by_result(cost_of):
            self._pay_for_call(cost_of, arguments, result)
        return result

    def _pay_for_call(self, cost_of: costs.Cost, arguments: list[str], result: str) -> None:
        if self._counts:
            values = "".join(f"{argument}, " for argument in arguments)
            self._write(f"c += {self._bound(cost_of)}(({values}), {result}, d)")
            self._check_deadline()

    def _direct(self, node: Invoke, arguments: list[str]) -> str | None:
        """An inlined Python expression, where a constant determines the class."""
        if node.on_text is not None:
            text = arguments[0]
            return f"{self._bound(node.on_text)}({text}) if type({text}) is str"
        for index, argument in enumerate(node.arguments):
            if not isinstance(argument, Const | Fixed) or len(arguments) != 2:
                continue
            known = quickly_known(argument)
            if known is None:
                continue
            kind = type(known.value)
            if kind not in _SIMPLE_CLASSES:
                continue
            other = arguments[1 - index]
            left, right = arguments
            test = f"if type({other}) is {kind.__name__}"
            if node.function in ("_==_", "_!=_"):
                return f"{left} {node.function[1:3]} {right} {test}"
            if node.function in _COMPARISONS:
                return f"{left} {_COMPARISONS[node.function]} {right} {test}"
            if node.function == "@in" and index == 0 and kind is str:
                return f"{left} in {right} if isinstance({right}, dict)"
        return None

    def _optional_or(self, node: OptionalOr) -> str:
        optional = self.value(node.optional)
        result = self._temporary()
        self.settle()
        self._write(f"if type({optional}) is not {self._bound(Optional)}:")
        self._write(f"    raise {self._bound(UnexpectedError)}")
        self._write(f"if {optional}.has_value:")
        self._write(
            f"    {result} = {optional}.value" if node.unwraps else f"    {result} = {optional}"
        )
        self._write("else:")
        self._indent += 1
        self._write(f"{result} = {self.value(node.otherwise)}")
        self.settle()
        self._indent -= 1
        return result
