"""Candidate changes of expressions: selectors and derived attributes."""

from __future__ import annotations

import re
from dataclasses import replace as replace_problem
from typing import Final

from msgspec.structs import replace

from allot.allocation.explain.change_scope import (
    Candidate,
    Candidates,
    ChangeScope,
    PutSpec,
    RequestKey,
    Spec,
)
from allot.allocation.explain.changes import (
    ConvertedAttribute,
    DerivedLikewise,
    OtherAttribute,
    WithoutSelector,
)
from allot.allocation.explain.reasons import ExpressionFailed
from allot.allocation.problem import AllocationProblem
from allot.api.claims import ResourceClaim
from allot.api.resource import CELDeviceSelector, DeviceSelector

_CONVERSIONS: Final = ("string", "int")


def without_selector(place: RequestKey, spec: Spec, put: PutSpec) -> Candidates:
    for index, selector in enumerate(spec.selectors):
        kept = (*spec.selectors[:index], *spec.selectors[index + 1 :])
        expression = selector.cel.expression if selector.cel is not None else ""
        without = WithoutSelector(*place, index, expression)
        yield without, Candidate(3, without, put(replace(spec, selectors=kept)))


# --- names ---


def with_other_attribute(
    place: RequestKey, spec: Spec, put: PutSpec, problem: AllocationProblem, scope: ChangeScope
) -> Candidates:
    """A similar attribute name, where an expression fails on a missing one."""
    for where, failure in scope.failures:
        if where != place:
            continue
        for wrong in failure.missing:
            for name in failure.similar:
                expression = with_name(failure.expression, wrong, name)
                if expression == failure.expression:
                    continue
                other = OtherAttribute(
                    *place,
                    failure.selector or 0,
                    name,
                    wrong,
                    expression,
                    failure.class_name,
                    failure.derived_attribute,
                )
                changed = _with_expression(spec, put, problem, failure, expression)
                yield other, Candidate(1, other, changed)


def with_name(expression: str, wrong: str, name: str) -> str:
    """The expression with another qualified name; trying it shows whether it helps."""
    wrong_domain, wrong_identifier = wrong.split("/", 1)
    domain, identifier = name.split("/", 1)
    member = rf"(\s*\]\s*(?:\.\s*\??\s*|\[\s*\??\s*[\"']))({re.escape(wrong_identifier)})\b"
    changed = re.sub(
        rf"([\"']){re.escape(wrong_domain)}\1{member}",
        lambda found: f"{found[1]}{domain}{found[1]}{found[2]}{identifier}",
        expression,
    )
    if changed == expression and domain == wrong_domain:
        # The domain was bound to a variable.
        changed = re.sub(
            rf"((?<!\.)\.\??|\[\??[\"'])({re.escape(wrong_identifier)})\b",
            lambda found: f"{found[1]}{identifier}",
            expression,
        )
    return changed


def _with_expression(
    spec: Spec,
    put: PutSpec,
    problem: AllocationProblem,
    failure: ExpressionFailed,
    expression: str,
) -> AllocationProblem:
    """The problem with another expression instead of the one that fails."""
    if failure.derived_attribute:
        derived = tuple(
            replace(each, expression=expression) if each.name == failure.derived_attribute else each
            for each in spec.derived_attributes
        )
        return put(replace(spec, derived_attributes=derived))
    index = failure.selector or 0
    if failure.class_name:
        return with_class_selector(problem, failure.class_name, index, expression)
    return put(replace(spec, selectors=_with_selector(spec.selectors, index, expression)))


def with_class_selector(
    problem: AllocationProblem, class_name: str, index: int, expression: str
) -> AllocationProblem:
    """The problem with another selector in a class."""
    class_ = problem.classes[class_name]
    selectors = _with_selector(class_.spec.selectors, index, expression)
    changed = replace(class_, spec=replace(class_.spec, selectors=selectors))
    return replace_problem(problem, classes={**problem.classes, class_name: changed})


def _with_selector(
    selectors: tuple[DeviceSelector, ...], index: int, expression: str
) -> tuple[DeviceSelector, ...]:
    selector = DeviceSelector(CELDeviceSelector(expression))
    return (*selectors[:index], selector, *selectors[index + 1 :])


def with_same_derivation(
    place: RequestKey, spec: Spec, put: PutSpec, claim: ResourceClaim, scope: ChangeScope
) -> Candidates:
    """An attribute derived as another request does it, where a constraint finds none."""
    own = {each.name for each in spec.derived_attributes}
    for attribute in scope.lacking_attributes(place):
        if attribute in own:
            continue
        for request in claim.spec.devices.requests:
            specs = (request.exactly,) if request.exactly is not None else request.first_available
            for other in specs:
                for derived in other.derived_attributes:
                    if derived.name == attribute:
                        likewise = DerivedLikewise(
                            *place, attribute, request.name, derived.expression
                        )
                        more = (*spec.derived_attributes, derived)
                        changed = put(replace(spec, derived_attributes=more))
                        subject = (DerivedLikewise, place, attribute)
                        yield subject, Candidate(1, likewise, changed)


# --- types ---


def with_conversion(place: RequestKey, spec: Spec, put: PutSpec, scope: ChangeScope) -> Candidates:
    """A derived attribute converted to another type, where a constraint compares different types."""
    for index, derived in enumerate(spec.derived_attributes):
        if not scope.has_different_types(place.claim, derived.name):
            continue
        for function in _CONVERSIONS:
            expression = f"{function}({derived.expression})"
            converted = replace(derived, expression=expression)
            others = spec.derived_attributes
            changed = (*others[:index], converted, *others[index + 1 :])
            convert = ConvertedAttribute(*place, derived.name, function, expression)
            problem = put(replace(spec, derived_attributes=changed))
            yield (ConvertedAttribute, place, derived.name), Candidate(1, convert, problem)
