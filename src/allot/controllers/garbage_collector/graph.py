"""The graph of owners and dependents: all objects by uid, and the dependents of every owner.

The graph is built from watch events, so it may be outdated, and an existing owner may be missing from it. It only
selects the objects to check; deletions are decided on live objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.client.discovery import ServedKind
from allot.client.metadata import MetadataObject

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class GraphNode(NamedTuple):
    """An object and its owner references."""

    kind: ServedKind
    key: ObjectKey
    uid: str
    owners: tuple[OwnerReference, ...] = ()
    is_being_deleted: bool = False
    waits_for_dependents: bool = False
    """In foreground deletion: dependents that block it are deleted first."""
    releases_dependents: bool = False
    """Being deleted with the policy Orphan."""

    @staticmethod
    def of(kind: ServedKind, obj: MetadataObject) -> GraphNode:
        metadata = obj.metadata
        key = ObjectKey(metadata.namespace, metadata.name)
        node = GraphNode(kind, key, metadata.uid, metadata.owner_references or ())
        if metadata.deletion_timestamp is None:
            return node
        finalizers = metadata.finalizers or ()
        return node._replace(
            is_being_deleted=True,
            waits_for_dependents=FOREGROUND in finalizers,
            releases_dependents=ORPHAN in finalizers,
        )

    def blocks(self, owner: str) -> bool:
        """Whether this object blocks the foreground deletion of the owner with this uid."""
        return any(ref.uid == owner and bool(ref.block_owner_deletion) for ref in self.owners)

    def is_meant_by(self, ref: OwnerReference, dependent: GraphNode) -> bool:
        """Whether a reference of `dependent` matches this object in all fields, not only in its uid."""
        return (
            ref.uid == self.uid
            and ref.kind == self.kind.kind
            and ref.api_version.rpartition("/")[0] == self.kind.group
            and ref.name == self.key.name
            and self.key.namespace in ("", dependent.key.namespace)
        )

    def __str__(self) -> str:
        return f"{self.kind.group_resource} {self.key}"


def is_same_in_graph(old: MetadataObject, new: MetadataObject) -> bool:
    """Whether two versions of an object have the same node. Finalizers count for objects that are being deleted."""
    before, after = old.metadata, new.metadata
    if before.owner_references != after.owner_references:
        return False
    if before.deletion_timestamp is None or after.deletion_timestamp is None:
        return before.deletion_timestamp is after.deletion_timestamp
    return before.finalizers == after.finalizers


class GraphWork(NamedTuple):
    """The objects to check after a change, by uid."""

    attempt_to_delete: frozenset[str] = frozenset()
    """Objects whose owners may be gone, or whose foreground deletion may be complete."""
    attempt_to_orphan: frozenset[str] = frozenset()
    """Owners that are deleted with the policy Orphan."""


NOTHING: Final = GraphWork()


class OwnerGraph:
    """All objects that are known, and the references between them."""

    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        """By uid of the owner, including owners that are not in the graph."""

    def __len__(self) -> int:
        """The number of objects and of owners that they name."""
        return len(self._nodes) + len(self._dependents)

    def get(self, uid: str) -> GraphNode | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[GraphNode]:
        return [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def put(self, new: GraphNode) -> GraphWork:
        """Add or update an object."""
        old = self._nodes.get(new.uid)
        self._nodes[new.uid] = new
        if not new.owners and not new.is_being_deleted and (old is None or not old.owners):
            return NOTHING
        if old is None and not new.is_being_deleted:  # most objects that have owners
            for ref in new.owners:
                self._dependents.setdefault(ref.uid, {})[new.uid] = None
            doubtful = self._if_doubtful(new)
            return GraphWork(frozenset(doubtful)) if doubtful else NOTHING
        before = {ref.uid for ref in old.owners} if old else set()
        after = {ref.uid for ref in new.owners}
        for owner in before - after:
            self._unlink(owner, new.uid)
        for owner in after - before:
            self._dependents.setdefault(owner, {})[new.uid] = None
        attempt = self._unblocked(old, new)
        if old is None or old.owners != new.owners:
            attempt |= self._if_doubtful(new)
        if new.waits_for_dependents and not (old and old.waits_for_dependents):
            attempt |= {new.uid, *self._dependents.get(new.uid, ())}
        starts = new.releases_dependents and not (old and old.releases_dependents)
        return GraphWork(frozenset(attempt), frozenset({new.uid} if starts else ()))

    def drop(self, uid: str) -> GraphWork:
        """Remove a deleted object."""
        old = self._nodes.pop(uid, None)
        if old is None:
            return NOTHING
        for ref in old.owners:
            self._unlink(ref.uid, uid)
        waiting = self._waiting(ref.uid for ref in old.owners)
        return GraphWork(frozenset({*self._dependents.get(uid, ()), *waiting}))

    def _unlink(self, owner: str, dependent: str) -> None:
        known = self._dependents.get(owner)
        if known is not None:
            known.pop(dependent, None)
            if not known:
                del self._dependents[owner]

    def _if_doubtful(self, node: GraphNode) -> set[str]:
        """The object itself, if one of its owners is missing, does not match, or is being deleted."""
        for ref in node.owners:
            owner = self._nodes.get(ref.uid)
            if owner is None or not owner.is_meant_by(ref, node) or owner.waits_for_dependents:
                return {node.uid}
        return set()

    def _unblocked(self, old: GraphNode | None, new: GraphNode) -> set[str]:
        """Owners in foreground deletion that this object no longer blocks."""
        if old is None or old.owners == new.owners:
            return set()
        return self._waiting(
            ref.uid for ref in old.owners if ref.block_owner_deletion and not new.blocks(ref.uid)
        )

    def _waiting(self, owners: Iterable[str]) -> set[str]:
        return {
            uid for uid in owners if (owner := self._nodes.get(uid)) and owner.waits_for_dependents
        }
