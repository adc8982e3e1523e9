"""Derived attributes (KEP-6080): names, expressions, and that something refers to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from allot import features
from allot.api.claims import DeviceClaim, DeviceDerivedAttribute
from allot.features import FeatureGates
from allot.rules import BARE_DERIVED_NAMES, EIGHT_DERIVED_ATTRIBUTES, EXPLAINED_COSTS
from allot.validation.context import Context
from allot.validation.expressions import (
    COST_LIMIT,
    MAX_EXPRESSION_LENGTH,
    validate_checked_expression,
)
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, required, too_long
from allot.validation.formats import byte_length
from allot.validation.lists import duplicates, validate_items
from allot.validation.names import IDENTIFIER_LENGTH, validate_fully_qualified_name

MAX_DERIVED_ATTRIBUTES: Final = 8
MAX_DERIVED_IN_KUBERNETES: Final = 32
BARE_NAME_RULE: Final = (
    "a name without a domain must consist of letters, digits, '_' and '-', and must start with a"
    " letter or '_' (e.g. 'numa' or 'shared-numa-node')"
)
NOT_REFERENCED: Final = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint "
    "targeting this request"
)
TOTAL_TOO_COMPLEX: Final = (
    "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
)

# The KEP's own examples are bare and have dashes (`shared-numa-node`).
_bare_name: Final = re.compile("[A-Za-z_][-A-Za-z0-9_]*")


def _is_bare_name(name: str) -> bool:
    return _bare_name.fullmatch(name) is not None and len(name) <= IDENTIFIER_LENGTH


def referenced_attributes(
    claim: DeviceClaim, request: str, alternative: str = ""
) -> frozenset[str]:
    """The attributes of the constraints that cover this request or alternative."""
    mine = {request, f"{request}/{alternative}"} if alternative else {request}
    # Kubernetes treats a constraint with both as one on matchAttribute.
    names = (
        constraint.match_attribute
        if constraint.match_attribute is not None
        else constraint.distinct_attribute
        for constraint in claim.constraints
        if not constraint.requests or not mine.isdisjoint(constraint.requests)
    )
    return frozenset(name for name in names if name is not None)


def _all_derived(claim: DeviceClaim) -> Iterator[DeviceDerivedAttribute]:
    for request in claim.requests:
        if request.exactly is not None:
            yield from request.exactly.derived_attributes
        for alternative in request.first_available:
            yield from alternative.derived_attributes


def bare_derived_names(
    claim: DeviceClaim, context: Context, *, stored: bool = False
) -> frozenset[str]:
    """The names without a domain that constraints of the claim may use; `stored` ones in any case."""
    if not stored and not _allows_bare_names(context.gates):
        return frozenset()
    return frozenset(derived.name for derived in _all_derived(claim) if _is_bare_name(derived.name))


def _allows_bare_names(gates: FeatureGates) -> bool:
    return features.DERIVED_ATTRIBUTES in gates and BARE_DERIVED_NAMES in gates


def validate_derived_attributes(
    attributes: tuple[DeviceDerivedAttribute, ...],
    path: FieldPath,
    referenced: frozenset[str],
    context: Context,
    *,
    stored: bool = False,
) -> Iterator[FieldError]:
    """The derived attributes of one request or alternative; `stored` ones may stay in any case."""
    if not attributes:
        return
    if features.DERIVED_ATTRIBUTES not in context.gates:
        if stored:
            return
        # KEP-6080: refused, not dropped: the claim would be allocated wrongly.
        yield forbidden(
            path, f"may not be used while feature gate {features.DERIVED_ATTRIBUTES} is off"
        )
        return

    def check(derived: DeviceDerivedAttribute, derived_path: FieldPath) -> Iterator[FieldError]:
        if not (stored and _is_bare_name(derived.name)):
            yield from _validate_name(derived.name, derived_path / "name", context.gates)
        if derived.name and derived.name not in referenced:
            yield invalid(derived_path / "name", derived.name, NOT_REFERENCED)
        yield from _validate_expression(derived.expression, derived_path / "expression", context)

    most = (
        MAX_DERIVED_ATTRIBUTES
        if EIGHT_DERIVED_ATTRIBUTES in context.gates and not stored
        else MAX_DERIVED_IN_KUBERNETES
    )
    yield from validate_items(attributes, path, most, check)
    if len(attributes) <= most:
        yield from duplicates(attributes, path, lambda derived: derived.name, declared=False)


def _validate_name(name: str, path: FieldPath, gates: FeatureGates) -> Iterator[FieldError]:
    if not name:
        yield required(path, declared=True)
    elif "/" in name or BARE_DERIVED_NAMES not in gates:
        yield from validate_fully_qualified_name(name, path)
    else:
        if byte_length(name) > IDENTIFIER_LENGTH:
            yield too_long(path, IDENTIFIER_LENGTH, declared=True)
        if not _bare_name.fullmatch(name):
            yield invalid(path, name, BARE_NAME_RULE, declared=True)


def _validate_expression(
    expression: str, path: FieldPath, context: Context
) -> Iterator[FieldError]:
    if not expression:
        yield required(path, declared=True)
    elif byte_length(expression) > MAX_EXPRESSION_LENGTH:
        yield too_long(path, MAX_EXPRESSION_LENGTH)
    else:
        checked = context.expressions.check_derived_attribute(expression, context.gates)
        yield from validate_checked_expression(expression, checked, path, context.gates)


def validate_claim_cost(
    claim: DeviceClaim, path: FieldPath, context: Context
) -> Iterator[FieldError]:
    """All derived attributes of a claim together have the budget of one expression."""
    if features.DERIVED_ATTRIBUTES not in context.gates:
        return
    costs = [
        context.expressions.check_derived_attribute(derived.expression, context.gates).cost
        for derived in _all_derived(claim)
        if derived.expression and byte_length(derived.expression) <= MAX_EXPRESSION_LENGTH
    ]
    total = sum(costs)
    if total <= COST_LIMIT:
        return
    if EXPLAINED_COSTS not in context.gates:
        yield forbidden(path, TOTAL_TOO_COMPLEX)
    elif max(costs) <= COST_LIMIT:  # one that is too complex alone has its own error
        yield forbidden(
            path,
            f"{TOTAL_TOO_COMPLEX}: the estimated cost is {total:,}, the limit is {COST_LIMIT:,}",
        )
