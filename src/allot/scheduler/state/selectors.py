"""Selectors of labels and nodes, compiled once and compared by value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

METADATA_NAME: Final = "metadata.name"

_is_integer: Final = re.compile(r"[+-]?[0-9]+").fullmatch
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


def read_integer(text: str) -> int | None:
    """The int64 that `text` spells, if it does."""
    number = int(text) if text.isascii() and len(text) <= 20 and _is_integer(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


class Requirement(NamedTuple):
    """What must hold for one label. `number` is the bound of Gt and Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    number: int = 0

    def admits(self, value: str | None) -> bool:
        """Whether a label may have this value; None if there is no such label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else read_integer(value)
        if number is None:
            return False
        return number > self.number if self.operator == "Gt" else number < self.number


class LabelSelector(NamedTuple):
    """Requirements that must all hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:
            if not requirement.admits(labels.get(requirement.key)):
                return False
        return True

    def and_requirements(self, more: Iterable[Requirement]) -> LabelSelector:
        return LabelSelector((*self.requirements, *more))


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items())
    )


def label_selector(raw: Mapping[str, Any] | None) -> LabelSelector | None:
    """A LabelSelector of the API. None, which matches nothing, if there is none or it makes no sense."""
    if raw is None:
        return None
    requirements = list(_equalities(raw.get("matchLabels") or {}))
    for expression in raw.get("matchExpressions") or ():
        requirement = _requirement(expression)
        if requirement is None or requirement.operator in ("Gt", "Lt"):
            return None
        requirements.append(requirement)
    return LabelSelector(tuple(requirements))


def labels_selector(labels: Mapping[str, str]) -> LabelSelector:
    """The selector of services and replication controllers: these labels with these values."""
    return LabelSelector(_equalities(labels))


def _requirement(raw: Mapping[str, Any]) -> Requirement | None:
    """One expression; None if it makes no sense."""
    operator = raw.get("operator", "")
    values = raw.get("values") or ()
    if operator not in _OPERATORS:
        return None
    if operator in ("Exists", "DoesNotExist"):
        return None if values else Requirement(raw.get("key", ""), operator)
    if not values:
        return None
    if operator in ("Gt", "Lt"):
        number = read_integer(values[0]) if len(values) == 1 else None
        return None if number is None else Requirement(raw.get("key", ""), operator, number=number)
    return Requirement(raw.get("key", ""), operator, frozenset(values))


class NodeTerm(NamedTuple):
    """Requirements on a node's labels and name that must all hold."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        for requirement in self.expressions:
            if not requirement.admits(labels.get(requirement.key)):
                return False
        return not self.fields or all(requirement.admits(name) for requirement in self.fields)

    @property
    def pinned_names(self) -> frozenset[str] | None:
        """The node names this term allows, if it names nodes at all."""
        pins = [field.values for field in self.fields if field.operator == "In"]
        return frozenset.intersection(*pins) if pins else None


class NodeSelection(NamedTuple):
    """Terms of which one must hold; without any, no node is selected."""

    terms: tuple[NodeTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(term.matches(name, labels) for term in self.terms)


def node_selection(raw: Mapping[str, Any] | None) -> NodeSelection | None:
    """A NodeSelector of the API; None if there is none. Terms that make no sense select nothing."""
    if raw is None:
        return None
    terms = (node_term(term) for term in raw.get("nodeSelectorTerms") or ())
    return NodeSelection(tuple(term for term in terms if term is not None))


def node_term(raw: Mapping[str, Any]) -> NodeTerm | None:
    """A term; None if it selects nothing: it is empty, or makes no sense."""
    expressions = [_requirement(one) for one in raw.get("matchExpressions") or ()]
    fields = [_requirement(one) for one in raw.get("matchFields") or ()]
    if not expressions and not fields:
        return None
    known = tuple(one for one in expressions if one is not None)
    pins = tuple(
        one
        for one in fields
        if one is not None and one.key == METADATA_NAME and one.operator in ("In", "NotIn")
    )
    if len(known) < len(expressions) or len(pins) < len(fields):
        return None
    return NodeTerm(known, pins)
