"""Versions of built-in kinds that are deprecated, and the warnings that clients of them get."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from allot.api.identities import GroupVersionKind
from allot.api.resource import GROUP as DRA


class Deprecation(NamedTuple):
    """Minor releases of Kubernetes v1. `removed_in` is 0 if the version stays."""

    since: int
    removed_in: int = 0
    replacement: str = ""


_WITH_V1: Final = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
DEPRECATIONS: Final[Mapping[GroupVersionKind, Deprecation]] = {
    GroupVersionKind("", "v1", "ComponentStatus"): Deprecation(19),
    GroupVersionKind("", "v1", "Endpoints"): Deprecation(
        33, replacement="discovery.k8s.io/v1 EndpointSlice"
    ),
    **{GroupVersionKind(DRA, "v1beta1", kind): Deprecation(35, 38) for kind in _WITH_V1},
    **{GroupVersionKind(DRA, "v1beta2", kind): Deprecation(36, 39) for kind in _WITH_V1},
    GroupVersionKind(DRA, "v1alpha3", "DeviceTaintRule"): Deprecation(36, 39),
}


@cache
def deprecation_warning(gvk: GroupVersionKind) -> str:
    """The warning about the version of a kind; empty if it is not deprecated."""
    found = DEPRECATIONS.get(gvk)
    if found is None:
        return ""
    text = f"{gvk.group_version} {gvk.kind} is deprecated in v1.{found.since}+"
    if found.removed_in:
        text += f", unavailable in v1.{found.removed_in}+"
    return f"{text}; use {found.replacement}" if found.replacement else text
