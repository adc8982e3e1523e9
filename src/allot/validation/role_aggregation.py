"""Which rules a ClusterRole collects from others by its aggregation rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from allot.validation.parts import Part, part, parts, text, texts

_LISTS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def aggregated_rules(role: Part, roles: Iterable[Part]) -> list[dict[str, Any]]:
    """The rules of all roles that the aggregation rule of `role` selects, each once, by the names of the roles."""
    own = text(part(role, "metadata"), "name")
    found: dict[tuple[tuple[str, ...], ...], None] = {}
    others = sorted(roles, key=lambda each: text(part(each, "metadata"), "name"))
    for selector in parts(part(role, "aggregationRule"), "clusterRoleSelectors"):
        for other in others:
            metadata = part(other, "metadata")
            if text(metadata, "name") != own and selects(selector, part(metadata, "labels")):
                for rule in parts(other, "rules"):
                    found[tuple(texts(rule, name) for name in _LISTS)] = None
    return [
        {name: list(values) for name, values in zip(_LISTS, rule, strict=True) if values}
        for rule in found
    ]


def selects(selector: Part, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches. An empty one matches everything."""
    wanted = part(selector, "matchLabels")
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        _holds(expression, labels) for expression in parts(selector, "matchExpressions")
    )


def _holds(expression: Part, labels: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
