r"""Field selectors: `spec.nodeName=a,status.phase!=Running`.

A backslash before `,`, `=` or `\` makes it part of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from allot.apiserver.selectors.errors import SelectorError

EVERY_KIND: Final = ("metadata.name", "metadata.namespace")
"""Fields that objects of every kind can be selected by."""

_terms: Final = re.compile(r"(?:\\.|[^,\\]|\\$)+", re.DOTALL).findall
_operator: Final = re.compile("!=|==|=").search
_escaped: Final = re.compile(r"\\(.?)", re.DOTALL)
_special: Final = re.compile(r"([,=\\])")
_bare: Final = re.compile(r"(?<!\\)(?:\\\\)*([,=])").search


class FieldRequirement(NamedTuple):
    """A field must have a value, or must not."""

    field: str
    value: str
    is_equal: bool = True

    def __str__(self) -> str:
        sign = "=" if self.is_equal else "!="
        return self.field + sign + _special.sub(r"\\\1", self.value)


class FieldSelector(NamedTuple):
    """Requirements on fields, which must all hold. Prints as a selector that reads as the same one."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def exact(self, field: str) -> str | None:
        """The value that a field must have, if there is one: for looking it up instead of searching."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.is_equal:
                return requirement.value
        return None

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The fields that must have a value, each with that value."""
        return tuple((each.field, each.value) for each in self.requirements if each.is_equal)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class FieldMatcher:
    """A field selector whose requirements are merged by field: there may be tens of thousands, on a few fields."""

    __slots__ = ("_refused", "_wanted")

    def __init__(self, selector: FieldSelector) -> None:
        wanted: dict[str, set[str]] = {}
        refused: dict[str, set[str]] = {}
        for requirement in selector.requirements:
            values = wanted if requirement.is_equal else refused
            values.setdefault(requirement.field, set()).add(requirement.value)
        self._wanted = tuple(wanted.items())
        """The values that a field must have; no object has two."""
        self._refused = tuple(refused.items())

    def matches(self, get: Callable[[str], str]) -> bool:
        """Whether an object is selected, whose fields are read by `get`."""
        for field, values in self._wanted:
            if len(values) > 1 or get(field) not in values:
                return False
        for field, values in self._refused:  # noqa: SIM110 - for every change and watch
            if get(field) in values:
                return False
        return True


def parse_field_selector(text: str) -> FieldSelector:
    """The selector in a string; `SelectorError` if it is not valid."""
    return FieldSelector(tuple(_requirement(term, text) for term in _terms(text)))


def _requirement(term: str, text: str) -> FieldRequirement:
    operator = _operator(term)
    if operator is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _unescaped(term[operator.end() :])
    return FieldRequirement(term[: operator.start()], value, operator.group() != "!=")


def _unescaped(value: str) -> str:
    if bare := _bare(value):
        character = bare.group(1)
        raise SelectorError(f"invalid field selector: unescaped character in value: {character}")
    for escape in _escaped.finditer(value):
        if escape.group(1) not in (",", "=", "\\"):
            raise SelectorError(
                f"invalid field selector: invalid escape sequence: {escape.group()}"
            )
    return _escaped.sub(r"\1", value)


NOT_SUPPORTED: Final = "field label not supported: {field}"


def require_supported(
    selector: FieldSelector, own_fields: Iterable[str] = (), message: str = NOT_SUPPORTED
) -> None:
    """`SelectorError` for the first field that objects cannot be selected by.

    `own_fields` are those of the kind, besides the two that every kind has; `message` is about others.
    """
    own = tuple(own_fields)
    for field, _, _ in selector.requirements:
        if field in EVERY_KIND or field in own:
            continue
        if own:
            raise SelectorError(message.format(field=field))
        known = ", ".join(f'"{name}"' for name in EVERY_KIND)
        raise SelectorError(f'"{field}" is not a known field selector: only {known}')
