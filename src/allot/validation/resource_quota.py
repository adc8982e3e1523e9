"""ResourceQuotas: scopes and amounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.container_resources import (
    NOT_NEGATIVE,
    QUOTA_RESOURCES,
    is_huge_pages_quota,
    is_known_name,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    required,
)
from allot.validation.formats import label_key_problems

SPEC: Final = FieldPath("spec")

QUOTA_SCOPES: Final = frozenset(
    (
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    )
)
_EXCLUSIVE_SCOPES: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTING_SCOPES: Final = QUOTA_SCOPES - {"PriorityClass", "VolumeAttributesClass"}
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_POD_AMOUNTS: Final = frozenset(
    ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
)


def _validate_quota_scopes(scopes: list[str], hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "scopes"
    for scope in scopes:
        if scope not in QUOTA_SCOPES:
            yield invalid(path, scopes, "unsupported scope")
            continue
        if _excludes(scope, hard):
            yield invalid(path, scopes, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _EXCLUSIVE_SCOPES):
        yield invalid(path, scopes, "conflicting scopes")


def _excludes(scope: str, hard: Mapping[str, Any]) -> bool:
    """Whether something that is bounded has no objects of this scope."""
    if scope == "VolumeAttributesClass":
        return False
    counted = {"pods"} if scope == "BestEffort" else {"pods", *_POD_AMOUNTS}
    return any(name not in counted for name in hard if name in _COUNTED or name in _POD_AMOUNTS)


def validate_quota(quota: RawObject) -> Iterator[FieldError]:
    hard = quota.get("spec", "hard", default={})
    yield from _validate_quota_amounts(hard)
    yield from _validate_quota_scopes(quota.get("spec", "scopes", default=[]), hard)
    for entry in quota.get("spec", "scopeSelector", "matchExpressions", default=[]):
        yield from _validate_scope_selector(entry, hard)


def _validate_scope_selector(
    entry: Mapping[str, Any], hard: Mapping[str, Any]
) -> Iterator[FieldError]:
    path = SPEC / "scopeSelector" / "matchExpressions"
    scope, operator = entry.get("scopeName", ""), entry.get("operator", "")
    values = entry.get("values") or []
    if scope not in QUOTA_SCOPES:
        yield invalid(path / "scopeName", scope, "unsupported scope")
    elif _excludes(scope, hard):
        yield invalid(path, entry, "unsupported scope applied to resource")
    if scope in _EXISTING_SCOPES and operator != "Exists":
        yield invalid(path / "operator", operator, _MUST_EXIST)
    if operator in ("In", "NotIn"):
        if not values:
            rule = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            yield required(path / "values", rule)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            rule = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            yield invalid(path / "values", values, rule)
    else:
        yield invalid(path / "operator", operator, "not a valid selector operator")


def _validate_quota_amounts(hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "hard"
    for name, amount in hard.items():
        yield from _validate_quota_name(name, path @ name)
        try:
            quantity = quantity_from_json(amount)
        except QuantityError as error:
            yield invalid(path @ name, amount, str(error))
            continue
        if quantity.sign < 0:
            yield invalid(path @ name, str(amount), NOT_NEGATIVE)
        if _is_counted(name) and quantity.milli_value() % 1000:  # which overflows, as in Kubernetes
            yield invalid(path @ name, str(amount), "must be an integer")


def _validate_quota_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    problems = label_key_problems(name)
    yield from (invalid(path, name, problem) for problem in problems)
    if "/" in name:
        return
    if not problems and not is_known_name(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    if name not in QUOTA_RESOURCES and not is_huge_pages_quota(name):
        yield invalid(path, name, "must be a standard resource for quota")


_COUNTED: Final = frozenset(
    (
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    )
)


def _is_counted(name: str) -> bool:
    """Whether a quota entry counts objects, which are whole numbers."""
    is_extended = "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
    return name in _COUNTED or is_extended
