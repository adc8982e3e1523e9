"""Attribute values as constraints compare them: sets of one type."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.cel.device import Attribute


class AttributeSet(NamedTuple):
    """The values of an attribute; a single value is a set of one.

    Versions are compared as texts: build metadata matters.
    """

    kind: str
    values: frozenset[int | str]
    is_list: bool

    def __str__(self) -> str:
        return ", ".join(str(value) for value in sorted(self.values, key=str))


NOT_PUBLISHED: Final = AttributeSet("not published", frozenset(), is_list=False)
"""Stands for a value that is not there, where None means that it is not known yet."""


def attribute_set(attribute: Attribute) -> AttributeSet:
    """The set an attribute stands for: empty if it is an empty list, or nothing we know."""
    for kind, listed in (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    ):
        if listed:
            return AttributeSet(kind, frozenset(listed), True)
    for kind, value in (
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("string", attribute.string),
        ("version", attribute.version),
    ):
        if value is not None:
            return AttributeSet(kind, frozenset((value,)), False)
    return AttributeSet("", frozenset(), True)
