"""Node selectors, as the core API defines them."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, required
from allot.validation.formats import is_subdomain, subdomain_problems
from allot.validation.names import validate_label_key, validate_label_value

NOT_AN_OPERATOR = "not a valid selector operator"


def names_nodes(selector: NodeSelector) -> bool:
    """Whether it selects nodes by their names only, without errors."""
    for term in selector.node_selector_terms:
        if term.match_expressions:
            return False
        for field in term.match_fields:
            if (
                field.key != "metadata.name"
                or field.operator not in ("In", "NotIn")
                or len(field.values) != 1
                or not is_subdomain(field.values[0])
            ):
                return False
    return bool(selector.node_selector_terms)


def validate_node_selector(selector: NodeSelector, path: FieldPath) -> Iterator[FieldError]:
    terms_path = path / "nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(terms_path, "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from validate_node_selector_term(term, terms_path @ index)


def validate_node_selector_term(term: NodeSelectorTerm, path: FieldPath) -> Iterator[FieldError]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _validate_expression(requirement, path / "matchExpressions" @ index)
    for index, requirement in enumerate(term.match_fields):
        yield from _validate_field(requirement, path / "matchFields" @ index)


def _validate_expression(
    requirement: NodeSelectorRequirement, path: FieldPath
) -> Iterator[FieldError]:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                yield required(
                    path / "values", "must be specified when `operator` is 'In' or 'NotIn'"
                )
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(
                    path / "values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
        case "Gt" | "Lt":
            if len(values) != 1:
                yield required(
                    path / "values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
        case operator:
            yield invalid(path / "operator", operator, NOT_AN_OPERATOR)
    yield from validate_label_key(requirement.key, path / "key")
    for index, value in enumerate(values):
        yield from validate_label_value(value, path / "values" @ index)


def _validate_field(requirement: NodeSelectorRequirement, path: FieldPath) -> Iterator[FieldError]:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid(path / "operator", requirement.operator, NOT_AN_OPERATOR)
    elif len(requirement.values) != 1:
        yield required(
            path / "values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if requirement.key != "metadata.name":
        yield invalid(path / "key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for problem in subdomain_problems(value):
            yield invalid(path / "values" @ index, value, problem)
