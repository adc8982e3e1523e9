"""The dependents of owners of one kind: indexed, watched, adopted and released."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.selectors import is_empty_selector, selects_labels
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.informer import Informer
from allot.client.options import PatchType
from allot.client.work_queue import WorkQueue
from allot.controllers.workloads.accessors import (
    is_deleting,
    labels_of,
    name_of,
    selector_of,
    uid_of,
)
from allot.controllers.workloads.expectations import Expectations
from allot.controllers.workloads.ownership import (
    BY_CONTROLLER,
    BY_SELECTOR,
    ORPHANS,
    adoption,
    classify_objects,
    controller_of,
    controller_uid,
    is_unchanged_orphan,
    orphan_labels,
    places_of_orphans,
    release,
    selected_label,
)

log = logging.getLogger(__name__)

RawT = TypeVar("RawT", bound=RawObject)


class Dependents(Generic[RawT]):
    """Objects that owners of one kind control. Their events queue the owner."""

    def __init__(
        self,
        client: Client,
        owners: Informer[RawObject],
        dependents: Informer[RawT],
        queue: WorkQueue[ObjectKey],
        expectations: Expectations | None = None,
        fits: Callable[[RawObject, RawT], bool] = lambda _owner, _obj: True,
    ) -> None:
        """`fits` is a further condition for adoption, besides the selector."""
        self._client = client
        self._owners = owners
        self._dependents = dependents
        self._queue = queue
        self._expectations = expectations
        self._fits = fits
        owners.add_index(BY_SELECTOR, selected_label)
        dependents.add_index(BY_CONTROLLER, controller_uid)
        dependents.add_index(ORPHANS, orphan_labels)
        dependents.add_handlers(self._added, self._updated, self._deleted, needs=owners)

    # --- reading ---

    def of(self, owner: RawObject) -> list[RawT]:
        """The objects that `owner` controls, whether its selector matches or not."""
        return self._dependents.by_index(BY_CONTROLLER, uid_of(owner))

    def owner_of(self, obj: RawObject) -> RawObject | None:
        """The owner that controls `obj`, if it is of this kind and exists."""
        controller = controller_of(obj)
        if controller is None or not controller.is_of(self._owners.resource):
            return None
        namespace = str(obj.get("metadata", "namespace", default=""))
        owner = self._owners.get(ObjectKey(namespace, controller.name))
        return owner if owner is not None and uid_of(owner) == controller.uid else None

    async def claim(self, owner: RawObject) -> list[RawT]:
        """The objects that `owner` controls and selects, after adopting and releasing."""
        found = self._dependents.by_index(ORPHANS, places_of_orphans(owner))
        orphans = [orphan for orphan in found if self._fits(owner, orphan)]
        claims = classify_objects(owner, self.of(owner), orphans)
        mine = list(claims.mine)
        for obj in claims.to_release:
            await self._patch(obj, release(owner, obj))
        if claims.to_adopt and await self._may_adopt(owner):
            for obj in claims.to_adopt:
                adopted = await self._patch(obj, adoption(self._owners.resource, owner, obj))
                if adopted is not None:
                    mine.append(adopted)
        return mine

    async def _may_adopt(self, owner: RawObject) -> bool:
        """A live check: an owner that is being deleted or was replaced must not adopt."""
        current = await self._client.find(self._owners.resource, owner.key)
        return current is not None and uid_of(current) == uid_of(owner) and not is_deleting(current)

    async def _patch(self, obj: RawT, patch: object) -> RawT | None:
        """The patched object; None if it is gone, was replaced, or was modified meanwhile."""
        try:
            return await self._client.patch(
                self._dependents.resource, obj.key, patch, PatchType.STRATEGIC
            )
        except ApiStatusError as error:
            if error.is_not_found or error.is_conflict or error.is_invalid:
                log.info("%s: not patched: %s", obj, error)
                return None
            raise

    # --- event handlers: without owners of this kind there is nothing to queue ---

    def _added(self, obj: RawT) -> None:
        if is_deleting(obj):  # first event after a restart
            self._deleted(obj)
            return
        self._touch(obj)

    def _updated(self, old: RawT, new: RawT) -> None:
        if is_unchanged_orphan(old, new):
            return
        before, after = controller_of(old), controller_of(new)
        if before is not None and before != after:
            self._queue_owner(old)
        if after is None and before is None and labels_of(old) == labels_of(new):
            return
        if is_deleting(new):
            self._deleted(new)
        else:
            self._touch(new)

    def _deleted(self, obj: RawT) -> None:
        owner = self._queue_owner(obj)
        if owner is not None and self._expectations is not None:
            self._expectations.created(owner.key, name_of(obj))
            self._expectations.deleted(owner.key, uid_of(obj))

    def _touch(self, obj: RawT) -> None:
        if controller_of(obj) is None:
            for wanting in self._owners_wanting(obj):
                self._queue.add(wanting.key)
            return
        owner = self._queue_owner(obj)
        if owner is not None and self._expectations is not None:
            self._expectations.created(owner.key, name_of(obj))

    def _queue_owner(self, obj: RawT) -> RawObject | None:
        owner = self.owner_of(obj)
        if owner is not None:
            self._queue.add(owner.key)
        return owner

    def _owners_wanting(self, orphan: RawT) -> Iterator[RawObject]:
        """Owners whose selector matches an orphan."""
        for place in orphan_labels(orphan):
            for owner in self._owners.by_index(BY_SELECTOR, place):
                selector = selector_of(owner)
                if not is_empty_selector(selector) and selects_labels(selector, labels_of(orphan)):
                    yield owner
