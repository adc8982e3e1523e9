"""Keeps what a server serves in step with the CustomResourceDefinitions in the store.

    a definition changes ──► its status: names accepted, established
                        ──► its resources are served, served otherwise, or no longer
                        ──► if it is being deleted: its objects are deleted, then its finalizer removed

Every server of a store does this; writes are based on the revision that was read, so that they agree.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from allot.api.base import replace
from allot.api.custom_resources import (
    CLEANUP,
    ESTABLISHED,
    NAMES_ACCEPTED,
    TERMINATING,
    CustomResourceDefinition,
)
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.custom_resource.resources import resources_of
from allot.apiserver.kinds.custom_resource_definition import with_condition
from allot.apiserver.kinds.custom_versions import CustomKind
from allot.apiserver.kinds.request import Caller, RequestInfo
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Pacer, json_work
from allot.apiserver.registry.definition_status import (
    TakenNames,
    names_taken_by,
    taken_names,
    with_status,
)
from allot.apiserver.registry.deletion import DeleteOptions
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.served import Place, ServedResources
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import Delete, Operation, Put, RevisionConflictError, StorageError
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)
T = TypeVar("T")

RETRY_SECONDS: Final = 1.0
DELETE_SECONDS: Final = 2.0
"""How long the deletion of one object of a deleted definition may take, such as its conversion by a webhook."""
MANAGER: Final = "kube-apiserver"
_DELETING: Final = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")

ManagersAfter = Callable[[Any, Any, datetime], tuple[dict[str, Any], ...]]
"""managedFields of a definition after the server changed its status: of the new and the old one."""


class _Seen(NamedTuple):
    """What is kept of one revision of a definition, so that it is not looked into again."""

    revision: int
    name: str
    group: str
    names: TakenNames
    is_settled: bool = False
    """Nothing is left to do until it changes, whatever other definitions do."""

    @classmethod
    def of(cls, stored: StoredObject) -> _Seen:
        definition: CustomResourceDefinition = stored.object
        names = names_taken_by(definition)
        return cls(stored.revision, definition.metadata.name, definition.group, names)


class CustomDefinitions:
    """The definitions of one server."""

    def __init__(
        self,
        caches: Caches,
        objects: ObjectStore,
        served: ServedResources,
        managers_after: ManagersAfter,
    ) -> None:
        self._caches = caches
        self._store = caches.store
        self._objects = objects
        self._served = served
        self._managers_after = managers_after
        self._definitions = resource_named("apiextensions.k8s.io", "customresourcedefinitions")
        self._kinds: dict[str, CustomKind] = {}
        self._seen: dict[str, _Seen] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve what is defined, and follow changes."""
        cache = self._caches.of(self._definitions)
        await cache.start()
        cache.listen(self._wake.set)
        with suppress(StorageError):
            await self._sync()
        self._task = asyncio.create_task(self._run(), name="custom definitions")

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._sync()
            except (StorageError, ApiError) as error:
                log.warning("custom resource definitions: %s; trying again", error)
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()
            except Exception:
                log.exception("custom resource definitions")
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _sync(self) -> None:
        """Look at the definitions that changed, and at those for which something is left to do."""
        cache = self._caches.of(self._definitions)
        await cache.refresh()
        stored = cache.select(cache.prefix)
        pacer = Pacer()
        seen: dict[str, _Seen] = {}
        async for each in pacer.each(stored):
            known = self._seen.get(each.key)
            is_known = known is not None and known.revision == each.revision
            seen[each.key] = (
                known
                if known is not None and is_known
                else await _beside(each, partial(_Seen.of, each))
            )
        self._seen = seen
        names = {each.name for each in seen.values()}
        for name in [name for name in self._kinds if name not in names]:
            await self._stop_serving(name)
        unsettled = [each for each in stored if not seen[each.key].is_settled]
        if unsettled:
            taken = taken_names((each.group, each.names) for each in seen.values())
            async for each in pacer.each(unsettled):
                await self._settle(each, taken)
        current = {kind.home for kind in self._kinds.values()}
        for resource in self._caches.custom_resources:
            if resource not in current and resource.custom.kind.home not in current:  # type: ignore[union-attr]
                await self._caches.forget(resource)

    async def _settle(self, stored: StoredObject, taken: dict[str, TakenNames]) -> None:
        """Do what one definition asks for; `taken` gets the names that it is given."""
        definition: CustomResourceDefinition = stored.object
        group = definition.group
        try:
            wanted = await self._sync_one(stored, definition, taken[group])
        except (KeyError, TypeError, ValueError):
            # Stored before the rules that refuse it; what else is defined is served.
            log.exception("%s: cannot be served", definition.metadata.name)
            return
        if wanted is not definition:
            taken[group] = taken[group].and_those(names_taken_by(wanted))
        elif _is_final(definition):
            self._seen[stored.key] = self._seen[stored.key]._replace(is_settled=True)

    async def _sync_one(
        self, stored: StoredObject, definition: CustomResourceDefinition, taken: TakenNames
    ) -> CustomResourceDefinition:
        """The definition with the status that it has now."""
        now = self._objects.clock()
        if definition.metadata.deletion_timestamp is None:
            wanted = await _beside(stored, lambda: with_status(definition, taken, now))
            if wanted is not definition:
                await self._write(stored, wanted)
                return wanted  # the change comes back
        if definition.has_condition(ESTABLISHED):
            await self._serve(definition)
        if definition.metadata.deletion_timestamp is not None:
            await self._finalize(stored, definition, now)
        return definition

    # --- serving ---

    async def _serve(self, definition: CustomResourceDefinition) -> None:
        name = definition.metadata.name
        known = self._kinds.get(name)
        if known is not None and _same(known.definition, definition):
            return
        # A schema may have a hundred thousand parts.
        kind, places = await asyncio.to_thread(self._places_of, definition)
        self._kinds[name] = kind
        self._served.add_custom(name, places)
        if known is not None:
            await self._caches.forget(known.home)

    def _places_of(
        self, definition: CustomResourceDefinition
    ) -> tuple[CustomKind, dict[Place, Resource]]:
        kind = resources_of(definition)
        versions = kind.versions.values()
        served = [kind.resources[version.name] for version in versions if version.is_served]
        return kind, self._served.places(served)

    async def _stop_serving(self, name: str) -> None:
        kind = self._kinds.pop(name)
        self._served.remove_custom(name)
        await self._caches.forget(kind.home)

    # --- deletion ---

    async def _finalize(
        self, stored: StoredObject, definition: CustomResourceDefinition, now: datetime
    ) -> None:
        """Delete the objects of a definition; when the last one is gone, so is the finalizer."""
        if CLEANUP not in definition.metadata.finalizers:
            return
        kind = self._kinds.get(definition.metadata.name)
        if kind is None:
            reason, message = "NeverEstablished", "resource was never established"
        else:
            started = with_condition(definition, TERMINATING, "True", *_DELETING, now)
            if definition.condition(TERMINATING) != started.condition(TERMINATING):
                await self._write(stored, started)
                return  # the change comes back
            if not await self._all_deleted(kind.home):
                return  # something holds them: their last change comes back
            reason, message = "InstanceDeletionCompleted", "removed all instances"
        done = with_condition(definition, TERMINATING, "False", reason, message, now)
        finalizers = tuple(each for each in definition.metadata.finalizers if each != CLEANUP)
        await self._write(stored, done.with_metadata(replace(done.metadata, finalizers=finalizers)))

    async def _all_deleted(self, resource: Resource) -> bool:
        cache = self._caches.of(resource)
        await cache.refresh()
        cache.listen(self._wake.set)
        caller = Caller("system:apiserver", {}, lambda _: True, ("system:masters",))
        info = RequestInfo(caller, resource.versions[0], "delete")
        async for each in Pacer().each(cache.select(cache.prefix)):
            if each.object.metadata.deletion_timestamp is not None:
                continue
            try:
                async with asyncio.timeout(DELETE_SECONDS):
                    await self._objects.delete(resource, each.object.key, DeleteOptions(), info)
            except ApiError:
                self._wake_later()
            except TimeoutError:  # other definitions do not wait for a webhook that does not answer
                self._wake_later()
                break
        await cache.refresh()
        return cache.count == 0

    def _wake_later(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake.set)

    # --- writing ---

    async def _write(self, stored: StoredObject, definition: CustomResourceDefinition) -> None:
        """Store a definition as the server changed it, unless it was changed meanwhile."""
        operation = await _beside(stored, lambda: self._operation(stored, definition))
        with suppress(RevisionConflictError):
            await self._store.write(operation)
        self._wake.set()

    def _operation(self, stored: StoredObject, definition: CustomResourceDefinition) -> Operation:
        codec = codec_for(self._definitions)
        old = stored.object
        managers = self._managers_after(definition, old, self._objects.clock())
        new = codec.with_metadata(definition, replace(definition.metadata, managed_fields=managers))
        metadata = new.metadata
        gone = metadata.deletion_timestamp is not None and not metadata.finalizers
        if gone:
            return Delete(stored.key, stored.revision)
        body = codec.encode(new, codec.storage_version)
        return Put(stored.key, body, stored.revision)


async def _beside(stored: StoredObject, work: Callable[[], T]) -> T:
    """What `work` on a definition returns; on a large one it is done in a thread."""
    is_large = json_work(stored.entry.value) > LARGE
    return await asyncio.to_thread(work) if is_large else work()


def _is_final(definition: CustomResourceDefinition) -> bool:
    """Whether its status depends on it alone: one that has all its names, and that is not being deleted."""
    return definition.metadata.deletion_timestamp is None and definition.has_condition(
        NAMES_ACCEPTED
    )


def _same(one: CustomResourceDefinition, other: CustomResourceDefinition) -> bool:
    """Whether two states of a definition are served alike."""
    return (
        one.metadata.uid == other.metadata.uid
        and one.get("spec") == other.get("spec")
        and one.accepted_names == other.accepted_names
    )
