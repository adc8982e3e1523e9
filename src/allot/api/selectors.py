"""Label selectors and node selectors: compiled once, matched often, compared by value.

    LabelSelector          requirements, all of which must hold (pods of a workload, objects of a list)
    LabelMatcher           the same, for selectors of any length: as quick as an object has few labels
    NodeSelection          terms, one of which must hold; a term has requirements on labels and on the name

`label_selector` and `node_selection` compile what objects contain. The string form of query parameters is
parsed by `apiserver.selectors`; whether a selector may be stored is checked by `validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from allot.api.meta import NodeSelector, NodeSelectorRequirement

METADATA_NAME: Final = "metadata.name"
"""The one field that node selectors know."""

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GREATER: Final = "Gt"
LESS: Final = "Lt"
EQUALS: Final = "="
NOT_EQUALS: Final = "!="

_MAX_DIGITS: Final = 64
"""Label values have at most 63 bytes."""


def read_integer(value: str) -> int | None:
    """The int64 that a label value or a bound spells; None for anything else."""
    digits = value[1:] if value[:1] in ("+", "-") else value
    if len(digits) > _MAX_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


class Requirement(NamedTuple):
    """What must hold for one label, or for the name of a node. `number` is the bound of Gt and Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    number: int = 0

    def admits(self, value: str | None) -> bool:
        """Whether the label may have this value; None stands for a missing label."""
        match self.operator:
            case "In" | "=":
                return value in self.values
            case "NotIn" | "!=":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                number = None if value is None else read_integer(value)
                if number is None:
                    return False
                return number > self.number if self.operator == GREATER else number < self.number
        return False

    def __str__(self) -> str:
        """As query parameters write it."""
        values = ",".join(sorted(self.values))
        match self.operator:
            case "In" | "NotIn":
                # Empty parentheses mean no value; the empty string alone needs a comma.
                return f"{self.key} {self.operator.lower()} ({values or ','})"
            case "=" | "!=":
                return f"{self.key}{self.operator}{values}"
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == GREATER else '<'}{values}"
        return self.key


class LabelSelector(NamedTuple):
    """Requirements that must all hold, in the order of their keys; without any, everything matches.

    Prints as a string that parses as the same selector.
    """

    requirements: tuple[Requirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:
            if not requirement.admits(labels.get(requirement.key)):
                return False
        return True

    def and_requirements(self, more: Iterable[Requirement]) -> LabelSelector:
        return LabelSelector((*self.requirements, *more))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()


class _ValueRule:
    """All requirements on one label, in one."""

    __slots__ = ("_allowed", "_others", "_refused")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        allowed: frozenset[str] | None = None
        refused: set[str] = set()
        others: dict[str, Requirement] = {}
        for each in requirements:
            match each.operator:
                case "In" | "=":
                    allowed = each.values if allowed is None else allowed & each.values
                case "NotIn" | "!=":
                    refused |= each.values
                case operator:
                    known = others.setdefault(operator, each)
                    if operator == GREATER and each.number > known.number:
                        others[operator] = each
                    if operator == LESS and each.number < known.number:
                        others[operator] = each
        self._allowed = allowed
        self._refused = refused
        self._others = tuple(others.values())

    def admits(self, value: str | None) -> bool:
        if self._allowed is not None and value not in self._allowed:
            return False
        if value in self._refused:
            return False
        return not self._others or all(each.admits(value) for each in self._others)


class LabelMatcher:
    """A label selector whose requirements are merged by label.

    A selector may have tens of thousands of them, and is matched with thousands of objects and changes.
    """

    __slots__ = ("_rules", "_wanted")

    def __init__(self, selector: LabelSelector) -> None:
        by_key: dict[str, list[Requirement]] = {}
        for requirement in selector.requirements:
            by_key.setdefault(requirement.key, []).append(requirement)
        self._rules = {key: _ValueRule(requirements) for key, requirements in by_key.items()}
        self._wanted = tuple(key for key, rule in self._rules.items() if not rule.admits(None))
        """Labels without which nothing matches."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As the selector does."""
        rules = self._rules
        if len(self._wanted) > len(labels):
            return False
        for key in self._wanted:
            if key not in labels:
                return False
        for key in rules if len(rules) < len(labels) else labels:
            if key in rules and key in labels and not rules[key].admits(labels[key]):
                return False
        return True


def label_selector(raw: Mapping[str, Any] | None) -> LabelSelector | None:
    """A `LabelSelector` of the API. None, which matches nothing, if it is missing or malformed."""
    if raw is None:
        return None
    requirements = _equalities(raw.get("matchLabels") or {})
    for expression in raw.get("matchExpressions") or ():
        compiled = _raw_requirement(expression)
        if compiled is None or compiled.operator in (GREATER, LESS):
            return None
        requirements.append(compiled)
    return LabelSelector(_by_key(requirements))


def labels_selector(labels: Mapping[str, str]) -> LabelSelector:
    """The selector of services and replication controllers: these labels with these values."""
    return LabelSelector(_by_key(_equalities(labels)))


def selects_labels(raw: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a `LabelSelector` of the API matches; compile it instead to ask more than once."""
    selector = label_selector(raw)
    return selector is not None and selector.matches(labels)


def is_empty_selector(raw: Mapping[str, Any] | None) -> bool:
    """Whether a `LabelSelector` of the API has no requirement, and so would match everything."""
    return not raw or not (raw.get("matchLabels") or raw.get("matchExpressions"))


def selector_string(raw: Mapping[str, Any] | None) -> str:
    """A `LabelSelector` of the API in the form of query parameters: `app=web,tier in (a,b),!gone`."""
    selector = label_selector(raw)
    return "" if selector is None else str(selector)


def requirement(key: str, operator: str, values: Iterable[str] | None) -> Requirement | None:
    """One requirement of a label selector or node selector; None if it is malformed."""
    values = frozenset(values or ())
    match operator:
        case "In" | "NotIn":
            return Requirement(key, operator, values) if values else None
        case "Exists" | "DoesNotExist":
            return None if values else Requirement(key, operator)
        case "Gt" | "Lt":
            number = read_integer(*values) if len(values) == 1 else None
            return None if number is None else Requirement(key, operator, values, number)
    return None


def _raw_requirement(raw: Mapping[str, Any]) -> Requirement | None:
    return requirement(raw.get("key", ""), raw.get("operator", ""), raw.get("values"))


def _equalities(labels: Mapping[str, str]) -> list[Requirement]:
    return [Requirement(key, EQUALS, frozenset((value,))) for key, value in labels.items()]


def _by_key(requirements: list[Requirement]) -> tuple[Requirement, ...]:
    if len(requirements) > 1:
        requirements.sort(key=lambda requirement: requirement.key)
    return tuple(requirements)


# --- nodes ---


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
        pins = [field.values for field in self.fields if field.operator == IN]
        return frozenset.intersection(*pins) if pins else None


class NodeSelection(NamedTuple):
    """A compiled node selector: terms of which one must hold; without any, no node is selected."""

    terms: tuple[NodeTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(term.matches(name, labels) for term in self.terms)


def node_selection(raw: Mapping[str, Any] | None) -> NodeSelection | None:
    """A `NodeSelector` as decoded JSON; None if it is missing. Malformed terms select nothing."""
    if raw is None:
        return None
    terms = (node_term(term) for term in raw.get("nodeSelectorTerms") or ())
    return NodeSelection(tuple(term for term in terms if term is not None))


def node_term(raw: Mapping[str, Any]) -> NodeTerm | None:
    """A `NodeSelectorTerm` as decoded JSON; None if it selects nothing: it is empty or malformed."""
    return _node_term(
        [_raw_requirement(each) for each in raw.get("matchExpressions") or ()],
        [_raw_requirement(each) for each in raw.get("matchFields") or ()],
    )


def typed_node_selection(selector: NodeSelector) -> NodeSelection:
    """The same for a typed node selector."""
    terms = (
        _node_term(_typed(term.match_expressions), _typed(term.match_fields))
        for term in selector.node_selector_terms
    )
    return NodeSelection(tuple(term for term in terms if term is not None))


def _typed(requirements: Iterable[NodeSelectorRequirement]) -> list[Requirement | None]:
    return [requirement(each.key, each.operator, each.values) for each in requirements]


def _node_term(
    expressions: list[Requirement | None], fields: list[Requirement | None]
) -> NodeTerm | None:
    if not expressions and not fields:
        return None
    known = tuple(each for each in expressions if each is not None)
    pins = tuple(
        each
        for each in fields
        if each is not None and each.key == METADATA_NAME and each.operator in (IN, NOT_IN)
    )
    if len(known) < len(expressions) or len(pins) < len(fields):
        return None
    return NodeTerm(known, pins)
