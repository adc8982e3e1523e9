"""Policies with their bindings, as they are stored; their expressions are compiled on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from allot.apiserver.dynamic_admission.expressions import (
    AdmissionExpression,
    MatchConditions,
    Variables,
)
from allot.apiserver.dynamic_admission.matching import Match, read_match
from allot.cel import types
from allot.cel.admission import Declared
from allot.validation.admission_policies import (
    ANNOTATION_TYPES,
    MESSAGE_TYPES,
    MUTATION_FIELDS,
    MUTATION_TYPES,
)


class PolicyBinding(NamedTuple):
    """One binding of a policy."""

    name: str
    match: Match | None
    param_ref: Mapping[str, Any] | None
    actions: tuple[str, ...]


def read_binding(document: Mapping[str, Any]) -> PolicyBinding:
    spec = document.get("spec") or {}
    match = spec.get("matchResources")
    return PolicyBinding(
        document["metadata"]["name"],
        None if match is None else read_match(match, matches_all=True),
        spec.get("paramRef"),
        tuple(spec.get("validationActions") or ()),
    )


class Policy:
    """What both kinds of policies have."""

    has_patches = False

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name: str = document["metadata"]["name"]
        self.spec: Mapping[str, Any] = document.get("spec") or {}
        self.match = read_match(self.spec.get("matchConstraints") or {})
        self.param_kind: Mapping[str, Any] | None = self.spec.get("paramKind")
        self.ignores_failures = self.spec.get("failurePolicy") == "Ignore"
        self.declared = Declared(params=self.param_kind is not None, patches=self.has_patches)
        self.is_compiled = False

    @property
    def expressions_size(self) -> int:
        return sum(map(len, _texts(self.spec)))

    def compile(self) -> None:
        """All expressions, which otherwise are compiled on first use."""
        _ = self.variables, self.conditions

    @cached_property
    def variables(self) -> Variables:
        return Variables(self.spec.get("variables") or (), self.declared)

    @cached_property
    def conditions(self) -> MatchConditions:
        conditions: Sequence[Mapping[str, Any]] = self.spec.get("matchConditions") or ()
        return MatchConditions(conditions, has_params=self.declared.params)

    def _expression(
        self, text: str, allowed: tuple[types.Type, ...], **changes: bool
    ) -> AdmissionExpression:
        declared = self.declared._replace(**changes)
        return AdmissionExpression(text, declared, allowed, self.variables.types)


def _texts(value: Any) -> Iterator[str]:
    """All strings in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


class Validation(NamedTuple):
    """One rule of a validating policy."""

    expression: AdmissionExpression
    message: str
    message_expression: AdmissionExpression | None
    reason: str


class ValidatingPolicy(Policy):
    """A ValidatingAdmissionPolicy."""

    def compile(self) -> None:
        super().compile()
        _ = self.validations, self.annotations

    @cached_property
    def validations(self) -> list[Validation]:
        return [self._validation(each) for each in self.spec.get("validations") or ()]

    def _validation(self, validation: Mapping[str, Any]) -> Validation:
        wording = validation.get("messageExpression")
        return Validation(
            self._expression(validation.get("expression", ""), (types.BOOL,)),
            (validation.get("message") or "").strip(),
            self._expression(wording, MESSAGE_TYPES, authorizer=False) if wording else None,
            validation.get("reason") or "Invalid",
        )

    @cached_property
    def annotations(self) -> list[tuple[str, AdmissionExpression]]:
        return [
            (
                each.get("key", ""),
                self._expression(each.get("valueExpression", "").strip(), ANNOTATION_TYPES),
            )
            for each in self.spec.get("auditAnnotations") or ()
        ]


class MutatingPolicy(Policy):
    """A MutatingAdmissionPolicy."""

    has_patches = True

    def compile(self) -> None:
        super().compile()
        _ = self.mutations

    @property
    def is_reinvoked(self) -> bool:
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @cached_property
    def mutations(self) -> list[tuple[str, AdmissionExpression]]:
        """The type of each patch, and its expression."""
        found = []
        for mutation in self.spec.get("mutations") or ():
            patch_type = mutation.get("patchType", "")
            given = mutation.get(MUTATION_FIELDS.get(patch_type, ""), {})
            allowed = MUTATION_TYPES.get(patch_type, ())
            found.append((patch_type, self._expression(given.get("expression", ""), allowed)))
        return found


class BoundPolicy(NamedTuple):
    """A policy, and its bindings in the order of their names."""

    policy: Any
    bindings: tuple[PolicyBinding, ...]
