"""Validation rules run on an object, within a budget.

A rule that fails on a value which an update leaves unchanged is a warning (ratcheting), unless the rule compares with
the old value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from allot.cel.errors import COST_LIMIT_TEXT
from allot.cel.expressions import TypedExpression
from allot.cel.library.times import parse_timestamp
from allot.cel.values import NONE, Duration, Value, optional_of
from allot.deadline import Deadline, DeadlineExceededError, no_deadline
from allot.validation.fields import OMITTED, ErrorType, FieldError, FieldPath, invalid
from allot.validation.structural.cel_types import escaped
from allot.validation.structural.correlation import NO_OLD, Correlation
from allot.validation.structural.field_paths import PathError, path_parts
from allot.validation.structural.formats import parsed_duration
from allot.validation.structural.rules import RuleSet, ValidationRule
from allot.validation.structural.schemas import Schema

CALL_LIMIT: Final = 1_000_000
"""The cost of one evaluation."""
OBJECT_BUDGET: Final = 10_000_000
"""The cost of all rules of an object."""
MAX_MESSAGE: Final = 5 * 1024
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_TYPES_BY_REASON: Final = {
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueForbidden": ErrorType.FORBIDDEN,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
}


class Inputs(NamedTuple):
    """The variables of one evaluation."""

    variables: Mapping[str, Value]


class RuleOutcome(NamedTuple):
    """The errors of an object, and errors about values that did not change, which are warnings."""

    errors: list[FieldError]
    ratcheted: list[FieldError]


def run_rules(
    rules: RuleSet, new: Any, old: Any = NO_OLD, deadline: Deadline = no_deadline
) -> RuleOutcome:
    """Run all rules on an object, or on its changes."""
    run = _Run(rules, deadline)
    try:
        run.below(Correlation(new, old, rules.root), None)
    except _OutOfBudgetError:
        run.errors.append(invalid(FieldPath("<nil>"), OMITTED, OUT_OF_BUDGET))
    return RuleOutcome(run.errors, run.ratcheted)


class _OutOfBudgetError(Exception):
    pass


class _Run:
    def __init__(self, rules: RuleSet, deadline: Deadline) -> None:
        self._rules = rules
        self._deadline = deadline
        self._left = OBJECT_BUDGET
        self._converted: dict[int, Value] = {}
        self.errors: list[FieldError] = []
        self.ratcheted: list[FieldError] = []

    def below(self, value: Correlation, path: FieldPath | None) -> None:
        schema, data = value.schema, value.new
        if not schema.has_rules_below or data is None:
            return
        for rule in self._rules.by_schema.get(schema, ()):
            self._run(rule, value, path)
        if isinstance(data, dict):
            for name in data:
                child = schema.below(name)
                if child is None:
                    continue
                if name in schema.properties:
                    where = FieldPath(name) if path is None else path / name
                else:
                    where = FieldPath(f"[{name}]") if path is None else path @ name
                self.below(value.field(name, child), where)
        elif isinstance(data, list) and schema.items is not None:
            assert path is not None
            for index in range(len(data)):
                self.below(value.item(index, schema.items), path @ index)

    def _run(self, rule: ValidationRule, value: Correlation, path: FieldPath | None) -> None:
        expression = rule.expression
        if not isinstance(expression, TypedExpression):
            return
        has_old = value.has_old and value.old is not None
        if rule.is_transition and not has_old:
            return
        variables: dict[str, Value] = {"self": self._value(value.new, value.schema)}
        if rule.has_optional_old:
            old = optional_of(self._value(value.old, value.schema)) if has_old else NONE
            variables["oldSelf"] = old
        elif has_old:
            variables["oldSelf"] = self._value(value.old, value.schema)
        try:
            outcome = expression.evaluator.evaluate(
                Inputs(variables), min(CALL_LIMIT, self._left), self._deadline
            )
        except DeadlineExceededError:
            raise _OutOfBudgetError from None
        self._left -= outcome.cost
        if outcome.error == COST_LIMIT_TEXT:
            raise _OutOfBudgetError
        if outcome.value is True:
            return
        error = self._error(rule, outcome.error, value, variables, path)
        if value.is_unchanged and not rule.uses_old:
            self.ratcheted.append(error)
        else:
            self.errors.append(error)
        if self._left <= 0:
            raise _OutOfBudgetError

    def _error(
        self,
        rule: ValidationRule,
        problem: str | None,
        value: Correlation,
        variables: Mapping[str, Value],
        path: FieldPath | None,
    ) -> FieldError:
        where = path or FieldPath("<nil>")
        if problem is not None:
            shown_rule = rule.message or rule.text.strip()
            return invalid(where, value.schema.type, f"{problem} evaluating rule: {shown_rule}")
        message = self._message(rule, variables)
        data = value.new
        shown = OMITTED if isinstance(data, dict | list) else data
        for part in _parts(rule.field_path):
            where = FieldPath(part) if path is None and where._part == "<nil>" else where / part
        type_ = _TYPES_BY_REASON.get(rule.reason, ErrorType.INVALID)
        if type_ is ErrorType.DUPLICATE:
            message = ""
        return FieldError(type_, where, shown, message)

    def _message(self, rule: ValidationRule, variables: Mapping[str, Value]) -> str:
        otherwise = rule.message or f"failed rule: {rule.text.strip()}"
        expression = rule.message_expression
        if not isinstance(expression, TypedExpression):
            return otherwise
        try:
            outcome = expression.evaluator.evaluate(
                Inputs(variables), min(CALL_LIMIT, max(self._left, 0)), self._deadline
            )
        except DeadlineExceededError:
            raise _OutOfBudgetError from None
        self._left -= outcome.cost
        text = outcome.value
        if outcome.error is not None or not isinstance(text, str):
            return otherwise
        trimmed = text.strip()
        if not trimmed or "\n" in trimmed or len(trimmed) > MAX_MESSAGE:
            return otherwise
        return trimmed

    # --- values ---

    def _value(self, data: Any, schema: Schema) -> Value:
        """The value in CEL; containers are converted once."""
        if not isinstance(data, dict | list):
            return _scalar(data, schema)
        known = self._converted.get(id(data))
        if known is None:
            known = self._converted[id(data)] = self._container(data, schema)
        return known

    def _container(self, data: Any, schema: Schema) -> Value:
        if isinstance(data, list):
            items = schema.items
            return [self._value(item, items) for item in data] if items else list(data)
        if schema.additional is not None:
            return {
                name: self._value(item, schema.additional)
                for name, item in data.items()
                if item is not None or schema.additional.nullable
            }
        fields: dict[Value, Value] = {}
        for name, item in data.items():
            child = schema.properties.get(name)
            if child is None:
                if name in ("apiVersion", "kind", "metadata"):
                    fields[name] = item
                continue
            visible = escaped(name)
            if visible is not None and item is not None:
                fields[visible] = self._value(item, child)
        return fields


def _parts(field_path: str) -> Iterator[str]:
    if field_path:
        try:
            yield from path_parts(field_path)
        except PathError:
            return


def _scalar(data: Any, schema: Schema) -> Value:
    """A scalar in the type that the schema declares."""
    if schema.is_int_or_string:
        return data
    match schema.type:
        case "number" if isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        case "integer" if isinstance(data, float) and data.is_integer():
            return int(data)
        case "string" if isinstance(data, str) and schema.format:
            return _formatted(data, schema.format)
    return data


def _formatted(data: str, format_: str) -> Value:
    match format_:
        case "byte":
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                return data
        case "duration":
            found = parsed_duration(data)
            return data if found is None else Duration(found)
        case "date":
            return parse_timestamp(f"{data}T00:00:00Z") or data
        case "date-time":
            return parse_timestamp(data) or data
    return data
