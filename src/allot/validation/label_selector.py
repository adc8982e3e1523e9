"""Label selectors of objects: whether they are well-formed. What they select is in `api.selectors`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, required
from allot.validation.names import validate_label_key, validate_label_value

Selector = Mapping[str, Any]

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def validate_label_selector(selector: Selector, path: FieldPath) -> Iterator[FieldError]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from validate_label_key(key, path / "matchLabels")
        yield from validate_label_value(value, path / "matchLabels")
    for index, requirement in enumerate(_requirements(selector)):
        yield from _validate_requirement(requirement, path / "matchExpressions" @ index)


def _validate_requirement(requirement: Selector, path: FieldPath) -> Iterator[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in _WITH_VALUES:
        if not values:
            yield required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES:
        if values:
            yield forbidden(
                path / "values",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )
    else:
        yield invalid(path / "operator", operator, "not a valid selector operator")
    yield from validate_label_key(requirement.get("key", ""), path / "key")
    for index, value in enumerate(values):
        yield from validate_label_value(value, path / "values" @ index)


def _requirements(selector: Selector) -> list[Selector]:
    requirements: list[Selector] = selector.get("matchExpressions") or []
    return requirements
