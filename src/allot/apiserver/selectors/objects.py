"""Label selectors as objects: `matchLabels` and `matchExpressions`, as in budgets and workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.apiserver.selectors.errors import SelectorError
from allot.apiserver.selectors.label_parser import label_selector, requirement
from allot.apiserver.selectors.labels import NOTHING, LabelSelector, Operator

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def parse_object_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """What a metav1.LabelSelector selects: nothing if it is missing, everything if it is empty.

    `SelectorError` if it is none, or cannot hold.
    """
    if selector is None:
        return NOTHING
    requirements = [
        requirement(key, Operator.EQUALS, [_text(value, f"matchLabels[{key}]")])
        for key, value in _mapping(selector, "matchLabels").items()
    ]
    expressions = selector.get("matchExpressions")
    if expressions is not None and not isinstance(expressions, list):
        raise SelectorError("matchExpressions must be a list")
    for expression in expressions or ():
        if not isinstance(expression, Mapping):
            raise SelectorError("an item of matchExpressions must be an object")
        key = _text(expression.get("key", ""), "key")
        name = _text(expression.get("operator", ""), "operator")
        operator = _OPERATORS.get(name)
        if operator is None:
            raise SelectorError(f'"{name}" is not a valid label selector operator')
        requirements.append(requirement(key, operator, _values(expression, operator)))
    return label_selector(requirements)


def _values(expression: Mapping[str, Any], operator: Operator) -> list[str]:
    values = expression.get("values")
    if values is None:
        return []
    if not isinstance(values, list):
        raise SelectorError("values must be a list")
    if values and operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        raise SelectorError("values set must be empty for exists and does not exist")
    return [_text(value, "an item of values") for value in values]


def _mapping(selector: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = selector.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SelectorError(f"{field} must be an object")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise SelectorError(f"{what} must be a text")
    return value
