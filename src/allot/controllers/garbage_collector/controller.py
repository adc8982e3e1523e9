"""The control loop: watches the metadata of all kinds, and deletes objects whose owners are gone."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from allot.client.discovery import ServedKind
from allot.client.errors import ApiStatusError
from allot.client.metadata import MetadataObject
from allot.client.options import DeleteOptions
from allot.client.served_kinds import ServedKinds
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.garbage_collector.decisions import (
    DropReferences,
    Keep,
    Released,
    Remove,
    WaitsFor,
    decide,
    progress_of,
    without_blocking,
    without_finalizer,
    without_owners,
)
from allot.controllers.garbage_collector.graph import (
    FOREGROUND,
    NOTHING,
    ORPHAN,
    GraphNode,
    GraphWork,
    OwnerGraph,
    is_same_in_graph,
)
from allot.controllers.garbage_collector.owners import Owners, UnknownOwnerError

log = logging.getLogger(__name__)

RECHECK_SECONDS: Final = 30.0
"""How often an owner is looked up that the informers do not cover."""
CONFLICT_SECONDS: Final = 0.1


class CollectorKey(NamedTuple):
    """An object to delete if its owners are gone, or an owner whose dependents are orphaned."""

    uid: str
    orphans: bool = False


class GarbageCollector(QueueController[CollectorKey]):
    """Deletes objects without owners, and performs foreground deletion and orphaning."""

    name = "garbage-collector-controller"
    queue_name = "garbage_collector"
    workers = 20

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.graph = OwnerGraph()
        self._kinds = context.informers.companion(ServedKinds)
        self._kinds.listen(self._observe, every_update_of=())
        self._owners = Owners(self.client, self._kinds, self.graph, context.recorder)

    async def run(self) -> None:
        # With dependents missing, foreground deletion would end too early, and orphaning would skip some.
        await self._kinds.wait_synced()
        await super().run()

    def _observe(
        self, kind: ServedKind, old: MetadataObject | None, new: MetadataObject | None
    ) -> None:
        if new is not None:
            if old is None or not is_same_in_graph(old, new):
                work = self.graph.put(GraphNode.of(kind, new))
                if work is not NOTHING:
                    self._add(work)
        elif old is not None:
            self._add(self.graph.drop(old.uid))

    def _add(self, work: GraphWork) -> None:
        for uid in work.attempt_to_delete:
            self.queue.add(CollectorKey(uid))
        for uid in work.attempt_to_orphan:
            self.queue.add(CollectorKey(uid, orphans=True))

    async def reconcile(self, key: CollectorKey) -> None:
        node = self.graph.get(key.uid)
        if node is None:
            return  # deleted
        try:
            await (self._orphan(node) if key.orphans else self._reconcile_node(node))
        except UnknownOwnerError as error:
            log.warning("%s: not deleted: %s", node, error)
            if error.may_change:
                self.queue.add_after(key, RECHECK_SECONDS)
        except ApiStatusError as error:
            if error.is_conflict:
                self.queue.add_after(key, CONFLICT_SECONDS)  # it has been modified
            elif not error.is_not_found:
                raise

    # --- deletion ---

    async def _reconcile_node(self, node: GraphNode) -> None:
        obj = await self._current(node)
        if obj is None:
            return  # the informer delivers the deletion
        if obj.is_being_deleted:
            if FOREGROUND in obj.finalizers:
                await self._advance(node, obj)
            return
        states = await self._owners.states(obj, node)
        match decide(obj, states, self.graph.dependents(node.uid)):
            case Keep():
                if any(self.graph.get(uid) is None for uid in states):
                    self.queue.add_after(CollectorKey(node.uid), RECHECK_SECONDS)
            case DropReferences(uids):
                log.info("%s: owners %s are gone, others remain", node, sorted(uids))
                await self.client.patch(node.kind.resource, node.key, without_owners(obj, uids))
            case Remove(policy, unblocks_owners):
                await self._remove(node, obj, policy, unblocks_owners=unblocks_owners)

    async def _advance(self, node: GraphNode, obj: MetadataObject) -> None:
        """One step of foreground deletion."""
        match progress_of(node.uid, self.graph.dependents(node.uid)):
            case Released():
                patch = without_finalizer(obj, FOREGROUND)
                await self.client.patch(node.kind.resource, node.key, patch)
            case WaitsFor(uids):
                for uid in uids:
                    self.queue.add(CollectorKey(uid))

    async def _remove(
        self, node: GraphNode, obj: MetadataObject, policy: str, *, unblocks_owners: bool
    ) -> None:
        if unblocks_owners:
            patch = without_blocking(obj)
            obj = await self.client.patch(node.kind.resource, node.key, patch)
        log.info("%s: deleted (%s), its owners are gone", node, policy)
        options = DeleteOptions(obj.uid, obj.metadata.resource_version, propagation_policy=policy)
        await self.client.delete(node.kind.resource, node.key, options)

    async def _current(self, node: GraphNode) -> MetadataObject | None:
        """The live object; None if it is gone, even if another one has its name."""
        found = await self.client.find(node.kind.resource, node.key)
        return found if found is not None and found.uid == node.uid else None

    # --- orphaning ---

    async def _orphan(self, owner: GraphNode) -> None:
        """Remove the owner reference from all dependents, then the owner's finalizer."""
        obj = await self._current(owner)
        if obj is None or not obj.is_being_deleted or ORPHAN not in obj.finalizers:
            return
        for dependent in self.graph.dependents(owner.uid):
            await self._set_free(dependent, owner.uid)
        await self.client.patch(owner.kind.resource, owner.key, without_finalizer(obj, ORPHAN))

    async def _set_free(self, dependent: GraphNode, owner: str) -> None:
        found = await self._current(dependent)
        if found is None or all(ref.uid != owner for ref in found.owners):
            return
        try:
            patch = without_owners(found, frozenset({owner}))
            await self.client.patch(dependent.kind.resource, dependent.key, patch)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
