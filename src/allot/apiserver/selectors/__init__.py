"""Selectors: which objects a list, a watch or a budget is about."""

from allot.apiserver.selectors.errors import SelectorError
from allot.apiserver.selectors.fields import (
    EVERY_KIND,
    NOT_SUPPORTED,
    FieldMatcher,
    FieldRequirement,
    FieldSelector,
    parse_field_selector,
    require_supported,
)
from allot.apiserver.selectors.label_parser import parse_label_selector

__all__ = [
    "EVERY_KIND",
    "NOT_SUPPORTED",
    "FieldMatcher",
    "FieldRequirement",
    "FieldSelector",
    "SelectorError",
    "parse_field_selector",
    "parse_label_selector",
    "require_supported",
]
