"""CEL expressions: compiled once, evaluated on devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from allot.cel import (
    UNBOUNDED_COST,
    AttributeValue,
    CelEvaluationError,
    Origin,
    Program,
    compile_derived,
    compile_selector,
)
from allot.features import FeatureGates
from allot.public.devices import Attribute, Device, plain_value
from allot.public.gates import feature_gates as resolve_gates
from allot.rules import RuleSet


class Expression:
    """A compiled expression: a device selector, or a derived attribute (KEP-6080). Created by `allot.compile`."""

    def __init__(self, program: Program, *, is_derived: bool) -> None:
        self._program = program
        self.is_derived = is_derived

    @property
    def source(self) -> str:
        return self._program.expression

    @property
    def type(self) -> str:
        """The static type of its value, as CEL writes it."""
        return str(self._program.output_type)

    @property
    def max_cost(self) -> int | None:
        """The estimated cost, as Kubernetes counts it; None without a bound."""
        cost = self._program.max_cost
        return None if cost >= UNBOUNDED_COST else cost

    def __call__(self, device: Device) -> Attribute:
        """The value on a device; `CelEvaluationError` if the evaluation fails."""
        answer = self._program.answer(device._prepared)
        if isinstance(answer, AttributeValue):
            return plain_value(answer)
        return answer is True

    def matches(self, device: Device) -> bool:
        """Whether a selector selects the device. An evaluation that fails raises `CelEvaluationError`."""
        if self.is_derived:
            raise TypeError(
                "matches() is for selectors; call a derived attribute: expression(device)"
            )
        return self(device) is True

    def select(self, devices: Iterable[Device]) -> tuple[Device, ...]:
        """The devices that a selector selects; those it fails on are left out."""
        return tuple(device for device in devices if self._is_selected(device))

    def cost(self, device: Device) -> int:
        """The cost of one evaluation on this device, in Kubernetes' units."""
        return self._program.evaluate(device._prepared).cost

    def _is_selected(self, device: Device) -> bool:
        try:
            return self.matches(device)
        except CelEvaluationError:
            return False

    def __repr__(self) -> str:
        what = "derived attribute" if self.is_derived else "selector"
        return f"<Expression {what} {self.source!r}: {self.type}>"

    def _repr_html_(self) -> str:
        return f"<code>{escape(self.source)}</code> : <code>{escape(self.type)}</code>"


def compile_expression(
    source: str,
    *,
    derived: bool = False,
    feature_gates: FeatureGates | Mapping[str, bool] | None = None,
    rules: RuleSet | str = RuleSet.SEEDS,
) -> Expression:
    """Compile a device selector, or with `derived` a derived attribute, as the API server does for a new object.

    `CelCompileError` has the problems with line, column and a caret.
    """
    gates = resolve_gates(feature_gates, rules)
    compile_ = compile_derived if derived else compile_selector
    return Expression(compile_(source, Origin.NEW, gates), is_derived=derived)
