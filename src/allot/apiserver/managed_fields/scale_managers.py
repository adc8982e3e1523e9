"""Managers of a workload's replicas, as the scale endpoint shows them, and back.

A Scale is an object of its own version in which only `spec.replicas` can be owned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.base import replace
from allot.apiserver.managed_fields import managers
from allot.apiserver.managed_fields.field_sets import contains, difference, from_paths
from allot.apiserver.managed_fields.managers import Manager, Ownership

SCALE_VERSION: Final = "autoscaling/v1"
_IN_SCALE: Final = ("spec", "replicas")
_REPLICAS: Final = from_paths(_IN_SCALE)

Entries = list[dict[str, Any]]


def entries_of_scale(parent: Entries, path: tuple[str, ...] = _IN_SCALE) -> Entries:
    """The owners of the replicas of a workload with these entries, as entries of its Scale.

    `path` is where the workload has its replicas.
    """
    elements = _elements(path)
    owners = {
        manager: Ownership(_REPLICAS, SCALE_VERSION, owned.applied, owned.time)
        for manager, owned in managers.decode(parent).items()
        if contains(owned.fields, *elements)
    }
    return managers.encode(owners)


def _elements(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in path)


def entries_of_parent(
    parent: Entries, scale: Entries, api_version: str, path: tuple[str, ...] = _IN_SCALE
) -> Entries:
    """The entries of the workload after a write to its Scale."""
    elements, replicas = _elements(path), from_paths(path)
    before = managers.decode(parent)
    left = dict(managers.decode(scale))
    found: dict[Manager, Ownership] = {}
    for manager, owned in before.items():
        if not contains(owned.fields, *elements):
            found[manager] = owned
        elif manager in left:
            found[manager] = owned
            del left[manager]
        else:
            # Updaters are identified by version too: they are added below if they still own the replicas.
            fields = difference(owned.fields, replicas)
            if fields:
                found[manager] = replace(owned, fields=fields)
    for manager, owned in left.items():
        if contains(owned.fields, *_elements(_IN_SCALE)):
            found[manager] = Ownership(replicas, api_version, owned.applied, _time(manager, before))
    return managers.encode(found)


def _time(manager: Manager, before: Mapping[Manager, Ownership]) -> str | None:
    """As in Kubernetes, a manager that is new here has no time."""
    return before[manager].time if manager in before else None
