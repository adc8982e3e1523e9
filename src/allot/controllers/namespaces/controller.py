"""The control loop that deletes the contents of terminating namespaces and finalizes them.

terminating ──► delete pods ──► when they are gone, delete everything else ──► empty: finalize
                    ▲                        │ objects remain
                    └────────────────────────┘ after an object is deleted, or after RETRY_SECONDS
"""

from __future__ import annotations

import logging
from typing import Final

from allot.api.core import Namespace
from allot.api.identities import ObjectKey
from allot.api.times import written_time
from allot.client.discovery import ServedKind
from allot.client.errors import ApiStatusError
from allot.client.metadata import MetadataObject
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import NAMESPACES
from allot.client.served_kinds import ServedKinds
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.namespaces.conditions import DeletionProgress, with_deletion_conditions

log = logging.getLogger(__name__)

FINALIZER: Final = "kubernetes"
RETRY_SECONDS: Final = 5.0
"""Requeue delay without deletion events."""
DEBOUNCE_SECONDS: Final = 0.05
"""Deletion events come in bursts: debounce."""
BACKGROUND: Final = "Background"


class NamespaceController(QueueController[str]):
    """Deletes the contents of namespaces that are being deleted."""

    name = "namespace-controller"
    queue_name = "namespace"
    workers = 10

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._kinds = context.informers.companion(ServedKinds)
        self._kinds.listen(self._object_deleted, only_deletions=True)
        self._terminating: set[str] = set()
        self._namespaces = context.informers.informer(NAMESPACES)
        self._namespaces.add_handlers(
            on_add=self._namespace_changed,
            on_update=lambda _, new: self._namespace_changed(new),
            on_delete=lambda old: self._terminating.discard(old.metadata.name),
        )

    def _namespace_changed(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp is None:
            return
        name = namespace.metadata.name
        if name not in self._terminating:
            self._terminating.add(name)
            self.queue.add(name)

    def _object_deleted(
        self, _: ServedKind, old: MetadataObject | None, _new: MetadataObject | None
    ) -> None:
        """Requeue a terminating namespace when one of its objects is deleted."""
        if old is not None and old.metadata.namespace in self._terminating:
            self.queue.add_after(old.metadata.namespace, DEBOUNCE_SECONDS)

    async def reconcile(self, key: str) -> None:
        namespace = await self.client.find(NAMESPACES, ObjectKey("", key))
        if namespace is None or not _is_to_be_emptied(namespace):
            return
        progress = await self._empty(key)
        try:
            namespace = await self._report(namespace, progress)
            if progress.is_empty:
                await self._let_go(namespace)
        except ApiStatusError as error:
            if error.is_conflict:
                self.queue.add_after(key, DEBOUNCE_SECONDS)
                return
            if not error.is_not_found:
                raise
        if not progress.is_empty:
            self.queue.add_after(key, RETRY_SECONDS)

    async def _empty(self, namespace: str) -> DeletionProgress:
        """Delete the contents; what remains, and what failed."""
        await self._kinds.refresh()
        progress = DeletionProgress(discovery_failure=self._kinds.failure)
        kinds = [
            kind for kind in self._kinds.kinds if kind.namespaced and kind.can("list", "delete")
        ]
        # Pods may use other objects until they have stopped.
        for kind in kinds:
            if _is_pod(kind):
                await self._empty_of(kind, namespace, progress)
        if not progress.remaining and not progress.content_failures:
            for kind in kinds:
                if not _is_pod(kind):
                    await self._empty_of(kind, namespace, progress)
        return progress

    async def _empty_of(self, kind: ServedKind, namespace: str, progress: DeletionProgress) -> None:
        try:
            left = await self._delete_all(kind, namespace)
        except ApiStatusError as error:
            if error.code not in (404, 405):  # nothing to delete
                progress.content_failures.append(f"{kind.group_resource}: {error}")
            return
        if left:
            progress.remaining[kind.group_resource] += len(left)
            progress.finalizers.update(name for obj in left for name in obj.finalizers)

    async def _delete_all(self, kind: ServedKind, namespace: str) -> list[MetadataObject]:
        """The objects of a kind that remain after deleting all of them."""
        scope = Scope(namespace)
        found = (await self.client.list(kind.resource, scope)).items
        new = [obj for obj in found if not obj.is_being_deleted]
        if not new:
            return found
        if kind.can("deletecollection"):
            options = DeleteOptions(propagation_policy=BACKGROUND)
            await self.client.delete_collection(kind.resource, scope, options)
        else:
            for obj in new:
                options = DeleteOptions(obj.uid, propagation_policy=BACKGROUND)
                await self._delete(kind, obj, options)
        return (await self.client.list(kind.resource, scope)).items

    async def _delete(self, kind: ServedKind, obj: MetadataObject, options: DeleteOptions) -> None:
        try:
            await self.client.delete(kind.resource, obj.key, options)
        except ApiStatusError as error:
            if not (error.is_not_found or error.is_conflict):
                raise

    async def _report(self, namespace: Namespace, progress: DeletionProgress) -> Namespace:
        before = namespace.get("status", "conditions", default=[])
        now = written_time(self.clock.today())
        after = with_deletion_conditions(before, progress, now)
        if after == before:
            return namespace
        updated = namespace.with_value(after, "status", "conditions")
        return await self.client.update_status(NAMESPACES, updated)

    async def _let_go(self, namespace: Namespace) -> None:
        log.info("namespace %s: empty, finalizing", namespace.metadata.name)
        finalizers = namespace.get("spec", "finalizers", default=[])
        kept = [name for name in finalizers if name != FINALIZER]
        finalized = namespace.with_value(kept, "spec", "finalizers")
        await self.client.update(NAMESPACES, finalized, subresource="finalize")


def _is_to_be_emptied(namespace: Namespace) -> bool:
    return namespace.metadata.deletion_timestamp is not None and FINALIZER in namespace.get(
        "spec", "finalizers", default=[]
    )


def _is_pod(kind: ServedKind) -> bool:
    return (kind.group, kind.plural) == ("", "pods")
