"""ResourceQuotas: scopes and amounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
)
from allot.validation.names import validate_label_key

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
_POD_AMOUNTS: Final = frozenset(
    ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
)


def _validate_quota_scopes(scopes: list[str], hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "scopes"
    for scope in scopes:
        if scope not in QUOTA_SCOPES:
            yield invalid(path, scopes, "unsupported scope")
            continue
        if scope == "VolumeAttributesClass":
            continue
        counted = {"pods"} if scope == "BestEffort" else {"pods", *_POD_AMOUNTS}
        if any(name not in counted for name in hard if name in _COUNTED or name in _POD_AMOUNTS):
            yield invalid(path, scopes, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _EXCLUSIVE_SCOPES):
        yield invalid(path, scopes, "conflicting scopes")


def validate_quota(quota: RawObject) -> Iterator[FieldError]:
    hard = quota.get("spec", "hard", default={})
    yield from _validate_quota_amounts(hard)
    yield from _validate_quota_scopes(quota.get("spec", "scopes", default=[]), hard)


def _validate_quota_amounts(hard: Mapping[str, Any]) -> Iterator[FieldError]:
    path = SPEC / "hard"
    for name, amount in hard.items():
        yield from validate_label_key(name, path @ name)
        try:
            quantity = quantity_from_json(amount)
        except QuantityError as error:
            yield invalid(path @ name, amount, str(error))
            continue
        if quantity.sign < 0:
            yield invalid(path @ name, str(amount), NOT_NEGATIVE)
        if _is_counted(name) and quantity.milli_value() % 1000:  # which overflows, as in Kubernetes
            yield invalid(path @ name, str(amount), "must be an integer")


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
