"""Selectors: which objects a list, a watch or a budget is about."""

from allot.apiserver.selectors.errors import SelectorError
from allot.apiserver.selectors.fields import (
    FieldRequirement,
    FieldSelector,
    parse_field_selector,
    require_supported,
)
from allot.apiserver.selectors.label_parser import parse_label_selector
from allot.apiserver.selectors.labels import (
    EVERYTHING,
    LabelSelector,
    Operator,
    Requirement,
)

__all__ = [
    "EVERYTHING",
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Operator",
    "Requirement",
    "SelectorError",
    "parse_field_selector",
    "parse_label_selector",
    "require_supported",
]
