"""Attribute values as constraints compare them: sets of one type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from allot.cel.device import Attribute


class AttributeSet(NamedTuple):
    """The values of an attribute; a single value is a set of one.

    Versions are compared as strings: build metadata counts.
    """

    kind: str
    values: frozenset[int | str]
    is_list: bool

    def __str__(self) -> str:
        return ", ".join(str(value) for value in sorted(self.values, key=str))


NOT_PUBLISHED: Final = AttributeSet("not published", frozenset(), is_list=False)
"""Stands for a missing value, where None means not computed yet."""


def attribute_set(attribute: Attribute) -> AttributeSet:
    """The values of an attribute; empty for an empty list and for an unknown type."""
    kind, values = _listed(attribute)
    if values:
        return AttributeSet(kind, frozenset(values), True)
    kind, value = _single(attribute)
    if value is not None:
        return AttributeSet(kind, frozenset((value,)), False)
    return AttributeSet("", frozenset(), True)


def _listed(attribute: Attribute) -> tuple[str, Iterable[int | str] | None]:
    if attribute.ints:
        return "int", attribute.ints
    if attribute.bools:
        return "bool", attribute.bools
    if attribute.strings:
        return "string", attribute.strings
    return "version", attribute.versions


def _single(attribute: Attribute) -> tuple[str, int | str | None]:
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    if attribute.string is not None:
        return "string", attribute.string
    return "version", attribute.version
