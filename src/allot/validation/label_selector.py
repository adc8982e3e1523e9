"""Label selectors as objects write them: whether they are well-formed, what they select, how they print."""

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


def is_empty(selector: Selector | None) -> bool:
    """Whether there is no requirement at all: it would select everything."""
    return not selector or not (selector.get("matchLabels") or _requirements(selector))


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold. An operator we do not know never does."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(requirement, labels) for requirement in _requirements(selector)
    )


def _holds(requirement: Selector, labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key", ""), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def selector_text(selector: Selector | None) -> str:
    """As query parameters and tables write it: `app=web,tier in (a,b),!gone`; empty if it is."""
    if not selector:
        return ""
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    parts += [
        (requirement.get("key", ""), _requirement_text(requirement))
        for requirement in _requirements(selector)
    ]
    return ",".join(text for _, text in sorted(parts))


def _requirement_text(requirement: Selector) -> str:
    key = requirement.get("key", "")
    values = ",".join(sorted(requirement.get("values") or []))
    match requirement.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
    return str(key)


def _requirements(selector: Selector) -> list[Selector]:
    requirements: list[Selector] = selector.get("matchExpressions") or []
    return requirements
