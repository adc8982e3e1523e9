"""The strategy of policies and webhook configurations: an update is validated in view of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from allot.api.kinds import Kind
from allot.api.raw import RawObject
from allot.apiserver.kinds.raw_strategy import COUNTED, Generation, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import UNSET, Age, Cell
from allot.validation.admission_policies import validate_policy_status
from allot.validation.fields import FieldError

Validate = Callable[[RawObject, RawObject | None], Iterator[FieldError]]
WEBHOOKS: Final = Generation((("webhooks",),))


class AdmissionStrategy(RawStrategy):
    """Like other raw kinds, with a validation that knows the stored object."""

    def __init__(self, validate: Validate, rules: KindRules, kind: Kind) -> None:
        super().__init__(rules, kind)
        self._validate = validate

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        yield from super().validate_create(new, request)
        yield from self._validate(new, None)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_update(new, old, request)
        yield from self._validate(new, old)

    def warnings(self, new: RawObject) -> list[str]:
        return [*super().warnings(new), *review_rule_warnings(new)]

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_status_update(new, old, request)
        yield from validate_policy_status(new)


_REVIEWS: Final = {
    "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io": (
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    ),
}


def review_rule_warnings(configuration: RawObject) -> Iterator[str]:
    """Rules of webhooks about reviews, for which webhooks are not called."""
    for index, webhook in enumerate(configuration.get("webhooks", default=[])):
        for number, rule in enumerate(webhook.get("rules") or ()):
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    if resource in _REVIEWS.get(group, ()):
                        yield (
                            f"webhooks[{index}].rules[{number}]: {resource}.{group} is excluded from "
                            "admission webhooks; this rule will have no effect"
                        )


def admission_strategy(
    validate: Validate,
    generation: Generation = COUNTED,
    *,
    has_status: bool = False,
    needs_resource_version: bool = False,
) -> Callable[[Kind], AdmissionStrategy]:
    rules = KindRules(
        generation=generation,
        status={} if has_status else None,
        needs_resource_version=needs_resource_version,
    )
    return partial(AdmissionStrategy, validate, rules)


def binding_row(binding: RawObject, age: Age) -> list[Cell]:
    reference = binding.get("spec", "paramRef")
    shown = UNSET
    if reference is not None:
        name = reference.get("name") or UNSET
        shown = f"{reference.get('namespace') or '*'}/{name}"
    return [
        binding.metadata.name,
        binding.get("spec", "policyName", default=""),
        shown,
        age(binding.metadata.creation_timestamp),
    ]


def policy_row(field: str, policy: RawObject, age: Age) -> list[Cell]:
    kind = policy.get("spec", "paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [
        policy.metadata.name,
        len(policy.get("spec", field, default=[])),
        shown,
        age(policy.metadata.creation_timestamp),
    ]


def webhooks_row(configuration: RawObject, age: Age) -> list[Cell]:
    return [
        configuration.metadata.name,
        len(configuration.get("webhooks", default=[])),
        age(configuration.metadata.creation_timestamp),
    ]
