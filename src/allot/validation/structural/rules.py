"""Validation rules (x-kubernetes-validations) of a schema, compiled, with their estimated costs.

`rule_evaluation` runs them on objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from allot.cel import types
from allot.cel.environment import Environment
from allot.cel.errors import CelCompileError
from allot.cel.expressions import TypedExpression, compile_expression
from allot.cel.kubernetes import typed_environment
from allot.cel.sizes import MAX, Range, times
from allot.cel.types import Type
from allot.deadline import Deadline, no_deadline
from allot.validation.fields import FieldError, FieldPath, forbidden, internal, invalid, required
from allot.validation.structural.cel_types import (
    MAX_REQUEST_BYTES,
    Declarations,
    DeclaredType,
    sizes_of,
)
from allot.validation.structural.field_paths import parse_field_path
from allot.validation.structural.schemas import Schema
from allot.validation.structural.structure_rules import unsupported

RULES: Final = "x-kubernetes-validations"
REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
RULE_COST_LIMIT: Final = 10_000_000
"""Of the estimate of one rule, for all the values it may run on."""
SCHEMA_COST_LIMIT: Final = 100_000_000
"""Of the estimates of all rules of a version."""
_MOST_EXPENSIVE: Final = 4
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, "
    "and strings are declared)"
)
_NO_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable "
    "to convert structural schema to CEL declarations"
)


class ValidationRule:
    """One validation rule of one part of a schema."""

    def __init__(
        self,
        source: Mapping[str, Any],
        expression: TypedExpression | CelCompileError,
        message: TypedExpression | CelCompileError | None,
    ) -> None:
        self.source = source
        self.expression = expression
        self.message_expression = message
        self.text: str = source.get("rule") or ""
        self.message: str = source.get("message") or ""
        self.reason: str = source.get("reason") or "FieldValueInvalid"
        self.field_path: str = source.get("fieldPath") or ""
        self.has_optional_old = bool(source.get("optionalOldSelf"))

    @cached_property
    def uses_old(self) -> bool:
        return isinstance(self.expression, TypedExpression) and "oldSelf" in self.expression.names

    @property
    def is_transition(self) -> bool:
        """Whether it only runs where there is an old value."""
        return self.uses_old and not self.has_optional_old


class RuleSet:
    """The rules of all parts of a schema."""

    def __init__(self, root: Schema, deadline: Deadline = no_deadline) -> None:
        self.root = root
        self.by_schema: dict[Schema, tuple[ValidationRule, ...]] = {}
        self._declarations = Declarations(root)
        self._environments: dict[tuple[Type, bool], Environment] = {}
        self._compile(root, deadline)

    def type_of(self, schema: Schema) -> DeclaredType | None:
        return self._declarations.type_of(schema)

    def _compile(self, schema: Schema, deadline: Deadline) -> None:
        if not schema.has_rules_below:
            return
        declared = self.type_of(schema)
        if schema.rules and declared is not None:
            found = []
            for source in schema.rules:
                deadline()
                found.append(self._rule(source, declared))
            self.by_schema[schema] = tuple(found)
        for _, child in schema.children():
            self._compile(child, deadline)

    def _rule(self, source: Mapping[str, Any], declared: DeclaredType) -> ValidationRule:
        environment = self._environment(declared.type, bool(source.get("optionalOldSelf")))

        def size_at(place: tuple[str, ...]) -> Range | None:
            return sizes_of(declared, place)

        def compiled(text: str) -> TypedExpression | CelCompileError:
            try:
                return compile_expression(text, environment, size_at)
            except CelCompileError as error:
                return error

        message = source.get("messageExpression") or ""
        return ValidationRule(
            source, compiled(source.get("rule") or ""), compiled(message) if message else None
        )

    def _environment(self, type_: Type, optional_old: bool) -> Environment:
        key = type_, optional_old
        if key not in self._environments:
            old = types.optional_of(type_) if optional_old else type_
            self._environments[key] = typed_environment(
                {"self": type_, "oldSelf": old}, self._declarations.messages
            )
        return self._environments[key]


# --- validation of the rules themselves ---


class _Cost(NamedTuple):
    path: FieldPath
    amount: int


class RuleValidation:
    """Checks the rules of one version of a CRD."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._costs: list[_Cost] = []

    def errors(self, path: FieldPath) -> Iterator[FieldError]:
        yield from self._below(self._rules.root, path, 1, None)
        total = min(sum(cost.amount for cost in self._costs), MAX)
        if total <= SCHEMA_COST_LIMIT:
            return
        ranked = sorted(self._costs, key=lambda cost: -cost.amount)[:_MOST_EXPENSIVE]
        for cost in ranked:
            yield forbidden(
                cost.path,
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 "
                "schema",
            )
        yield forbidden(
            path,
            _cost_text(
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
                total,
                SCHEMA_COST_LIMIT,
            ),
        )

    def _below(
        self, schema: Schema, path: FieldPath, count: int | None, uncorrelated: FieldPath | None
    ) -> Iterator[FieldError]:
        """`count`: how many values the part may have, None without a bound."""
        if not schema.has_rules_below:
            return
        if schema.rules:
            yield from self._of_part(schema, path, count, uncorrelated)
        for name, child in schema.properties.items():
            yield from self._below(child, path / "properties" @ name, count, uncorrelated)
        if schema.additional is not None:
            yield from self._below(
                schema.additional,
                path / "additionalProperties",
                _product(count, schema.max_properties),
                uncorrelated,
            )
        if schema.items is not None:
            lost = uncorrelated
            if lost is None and schema.list_type != "map":
                lost = path
            yield from self._below(
                schema.items, path / "items", _product(count, schema.max_items), lost
            )

    def _of_part(
        self, schema: Schema, path: FieldPath, count: int | None, uncorrelated: FieldPath | None
    ) -> Iterator[FieldError]:
        declared = self._rules.type_of(schema)
        for index, source in enumerate(schema.rules):
            yield from _plain_problems(source, schema, path / RULES @ index)
        if declared is None:
            yield internal(path / RULES, _NO_TYPE)
            return
        if count is None:
            count = MAX_REQUEST_BYTES // (declared.min_size + 1)
        for index, rule in enumerate(self._rules.by_schema.get(schema, ())):
            where = path / RULES @ index
            yield from self._expression_problems(rule, where, count)
            if rule.uses_old and uncorrelated is not None:
                yield invalid(
                    where / "rule",
                    rule.text,
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                    f"{uncorrelated}",
                )
            if rule.source.get("optionalOldSelf") is not None and not rule.uses_old:
                yield invalid(
                    where / "optionalOldSelf",
                    rule.source["optionalOldSelf"],
                    "may not be set if oldSelf is not used in rule",
                )

    def _expression_problems(
        self, rule: ValidationRule, path: FieldPath, count: int
    ) -> Iterator[FieldError]:
        if rule.text.strip():
            yield from self._problems(
                rule, rule.expression, path / "rule", count, "estimated rule cost", types.BOOL
            )
        message = rule.message_expression
        if message is not None and (rule.source.get("messageExpression") or "").strip():
            yield from self._problems(
                rule,
                message,
                path / "messageExpression",
                count,
                "estimated messageExpression cost",
                types.STRING,
            )

    def _problems(
        self,
        rule: ValidationRule,
        expression: TypedExpression | CelCompileError,
        path: FieldPath,
        count: int,
        what: str,
        wanted: Type,
    ) -> Iterator[FieldError]:
        is_message = wanted == types.STRING
        if isinstance(expression, CelCompileError):
            prefix = "messageExpression " if is_message else ""
            yield invalid(path, _shown(rule.source), f"{prefix}{expression.text}")
            return
        if expression.output_type not in (wanted, types.DYN, types.ANY):
            problem = (
                "messageExpression must evaluate to a string"
                if is_message
                else "cel expression must evaluate to a bool"
            )
            yield invalid(path, _shown(rule.source), problem)
            return
        cost = times(expression.max_cost, count)
        self._costs.append(_Cost(path, cost))
        if cost > RULE_COST_LIMIT:
            yield forbidden(path, _cost_text(what, cost, RULE_COST_LIMIT))


def _product(count: int | None, most: int | None) -> int | None:
    return None if count is None or most is None else times(count, max(most, 0))


def _cost_text(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def _shown(source: Mapping[str, Any]) -> msgspec.Raw:
    """A rule as Go writes the whole of it."""
    text = json.dumps(
        {
            "Rule": source.get("rule") or "",
            "Message": source.get("message") or "",
            "MessageExpression": source.get("messageExpression") or "",
            "Reason": source.get("reason"),
            "FieldPath": source.get("fieldPath") or "",
            "OptionalOldSelf": source.get("optionalOldSelf"),
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return msgspec.Raw(text.encode())


def _plain_problems(
    source: Mapping[str, Any], schema: Schema, path: FieldPath
) -> Iterator[FieldError]:
    """What is wrong with a rule apart from its expressions."""
    text, message = source.get("rule") or "", source.get("message") or ""
    if not text.strip():
        yield required(path / "rule", "rule is not specified")
    if message and not message.strip():
        yield invalid(path / "message", message, "must be non-empty if specified")
    elif "\n" in message or "\r" in message:
        yield invalid(path / "message", message, "must not contain line breaks")
    elif not message and ("\n" in text.strip() or "\r" in text.strip()):
        yield required(path / "message", "message must be specified if rule contains line breaks")
    expression = source.get("messageExpression") or ""
    if expression and not expression.strip():
        yield required(
            path / "messageExpression", "messageExpression must be non-empty if specified"
        )
    reason = source.get("reason")
    if reason is not None and reason not in REASONS:
        yield unsupported(path / "reason", reason, REASONS)
    field_path = source.get("fieldPath") or ""
    if field_path and parse_field_path(field_path, schema) is None:
        yield invalid(path / "fieldPath", field_path, "must be a valid path")
