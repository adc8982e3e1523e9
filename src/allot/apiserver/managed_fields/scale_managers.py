"""Managers of a workload's replicas, as the scale endpoint shows them, and back.

A Scale is an object of its own version in which only `spec.replicas` can be owned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.apiserver.managed_fields import managers
from allot.apiserver.managed_fields.field_sets import contains, difference, from_paths
from allot.apiserver.managed_fields.managers import Manager, Ownership

SCALE_VERSION: Final = "autoscaling/v1"
_PATH: Final = ("f:spec", "f:replicas")
_REPLICAS: Final = from_paths(("spec", "replicas"))

Entries = list[dict[str, Any]]


def entries_of_scale(parent: Entries) -> Entries:
    """The owners of the replicas of a workload with these entries, as entries of its Scale."""
    owners = {
        manager: Ownership(_REPLICAS, SCALE_VERSION, owned.applied, owned.time)
        for manager, owned in managers.decode(parent).items()
        if contains(owned.fields, *_PATH)
    }
    return managers.encode(owners)


def entries_of_parent(parent: Entries, scale: Entries, api_version: str) -> Entries:
    """The entries of the workload after a write to its Scale."""
    before = managers.decode(parent)
    left = dict(managers.decode(scale))
    found: dict[Manager, Ownership] = {}
    for manager, owned in before.items():
        if not contains(owned.fields, *_PATH):
            found[manager] = owned
        elif manager in left:
            found[manager] = owned
            del left[manager]
        else:
            # Updaters are identified by version too: they are added below if they still own the replicas.
            fields = difference(owned.fields, _REPLICAS)
            if fields:
                found[manager] = owned._replace(fields=fields)
    for manager, owned in left.items():
        if contains(owned.fields, *_PATH):
            found[manager] = Ownership(
                _REPLICAS, api_version, owned.applied, _time(manager, before)
            )
    return managers.encode(found)


def _time(manager: Manager, before: Mapping[Manager, Ownership]) -> str | None:
    """As in Kubernetes, a manager that is new here has no time."""
    return before[manager].time if manager in before else None
