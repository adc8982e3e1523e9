"""What to do with an object, from the state of its owners and dependents.

owner      present                                            solid
           present, waits for its dependents to go            waiting
           missing, or another object of that name            dangling

some solid                  keep; references to all others are dropped
none solid, some waiting    delete; in the foreground if it has dependents itself
all dangling                delete, with the policy that its own finalizers ask for
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.meta import OwnerReference
from allot.client.metadata import MetadataObject
from allot.controllers.garbage_collector.graph import FOREGROUND, ORPHAN, GraphNode


class OwnerState(Enum):
    """The state of an owner, in the words of Kubernetes' garbage collector."""

    SOLID = "solid"
    WAITING = "waiting"
    DANGLING = "dangling"


class Keep(NamedTuple):
    """Nothing to do."""


class DropReferences(NamedTuple):
    """Keep the object, and remove its owner references to these uids."""

    uids: frozenset[str]


class Remove(NamedTuple):
    """Delete the object with this propagation policy."""

    policy: str
    unblocks_owners: bool = False
    """The object is part of a cycle: clear blockOwnerDeletion of its references first."""


class Released(NamedTuple):
    """Nothing blocks the foreground deletion: remove the finalizer."""


class WaitsFor(NamedTuple):
    """These dependents must be deleted first."""

    uids: frozenset[str]


CollectionDecision = Keep | DropReferences | Remove | Released | WaitsFor

KEEP: Final = Keep()


def decide(
    obj: MetadataObject,
    owner_state_by_uid: Mapping[str, OwnerState],
    dependents: Iterable[GraphNode],
) -> CollectionDecision:
    """What to do with an object that is not being deleted."""
    states = {ref.uid: owner_state_by_uid[ref.uid] for ref in obj.owners}
    if not states:
        return KEEP
    loose = frozenset(uid for uid, state in states.items() if state is not OwnerState.SOLID)
    if len(loose) < len(states):
        return DropReferences(loose) if loose else KEEP
    known = list(dependents)
    if OwnerState.WAITING in states.values() and known:
        # Objects in a cycle would wait for each other forever.
        is_circle = any(dependent.waits_for_dependents for dependent in known)
        return Remove("Foreground", unblocks_owners=is_circle)
    return Remove(policy_of(obj))


def policy_of(obj: MetadataObject) -> str:
    """The propagation policy for deleting an object without owners."""
    if ORPHAN in obj.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in obj.finalizers else "Background"


def progress_of(uid: str, dependents: Iterable[GraphNode]) -> Released | WaitsFor:
    """The progress of the foreground deletion of an owner."""
    blocking = [dependent for dependent in dependents if dependent.blocks(uid)]
    if not blocking:
        return Released()
    return WaitsFor(frozenset(node.uid for node in blocking if not node.waits_for_dependents))


# --- patches, with preconditions ---


def without_owners(obj: MetadataObject, uids: frozenset[str]) -> dict[str, Any]:
    return _patch(obj, "ownerReferences", _built(ref for ref in obj.owners if ref.uid not in uids))


def without_blocking(obj: MetadataObject) -> dict[str, Any]:
    return _patch(
        obj,
        "ownerReferences",
        _built(msgspec.structs.replace(ref, block_owner_deletion=False) for ref in obj.owners),
    )


def without_finalizer(obj: MetadataObject, finalizer: str) -> dict[str, Any]:
    return _patch(obj, "finalizers", [name for name in obj.finalizers if name != finalizer])


def _patch(obj: MetadataObject, field: str, value: list[Any]) -> dict[str, Any]:
    """A merge patch of one metadata list, with uid and resourceVersion as preconditions."""
    metadata = obj.metadata
    same = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    return {"metadata": {**same, field: value or None}}


def _built(refs: Iterable[OwnerReference]) -> list[Any]:
    return [msgspec.to_builtins(ref) for ref in refs]
