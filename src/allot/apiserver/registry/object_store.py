"""The registry: creates, updates and deletes stored objects, with optimistic concurrency.

Storage errors become API errors in `storage_errors`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from typing import Any, Final

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import Admission, AdmissionAttributes
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.request import RequestInfo, WriteRequest
from allot.apiserver.kinds.resources import ByResource, Resource
from allot.apiserver.pacing import LARGE, Workers, json_work
from allot.apiserver.registry import deletion
from allot.apiserver.registry.begin_hooks import BeginHooks, begin
from allot.apiserver.registry.conversion import Converter
from allot.apiserver.registry.deletion import DeleteOptions, Gone
from allot.apiserver.registry.storage_encoding import (
    encode_for_storage,
    with_known_times,
    work_after,
)
from allot.apiserver.registry.turns import Turns
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.registry.write_pipeline import Update, pipeline_for
from allot.apiserver.registry.write_requests import WriteRequests
from allot.apiserver.registry.write_results import RuleWarnings, Written, accepted, completed
from allot.apiserver.registry.write_steps import WriteSteps, write_steps
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.storage_errors import api_error_for
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.client.wall_clock import wall_clock
from allot.features import FeatureGates
from allot.storage.interface import (
    MISSING,
    Check,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
    Store,
)
from allot.validation.expressions import ExpressionChecker

MAX_TRIES: Final = 100
"""Attempts of a write after conflicts, before the client gets 409."""
MAX_GENERATED_NAMES: Final = 8


RequestedUpdate = tuple[Update, RequestInfo]
"""An update, and the request that it is part of."""


class ObjectStore:
    """All writes of one API server."""

    def __init__(
        self,
        store: Store,
        caches: Caches,
        gates: FeatureGates,
        expressions: ExpressionChecker,
        admission: Admission,
        hooks: BeginHooks,
        workers: Workers,
        converter: Converter,
        clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        self._store = store
        self._caches = caches
        self._gates = gates
        self._creation_lock = admission.creation_lock
        self._creates, self._updates, self._deletes = (
            ByResource(partial(write_steps, operation, admission, hooks))
            for operation in ("create", "update", "delete")
        )
        self._workers = workers
        self._converter = converter
        self._clock = clock
        self._requests = WriteRequests(gates, expressions, clock)
        self._turns = Turns()
        self._rule_warnings = RuleWarnings(gates)

    @property
    def clock(self) -> Callable[[], datetime]:
        return self._clock

    @property
    def gates(self) -> FeatureGates:
        return self._gates

    # --- create ---

    async def create(
        self,
        resource: Resource,
        namespace: str,
        obj: Any,
        info: RequestInfo,
        managers: tuple[dict[str, Any], ...] = (),
    ) -> Written:
        """Store a new object with these managedFields; its name may be generated."""
        steps = self._creates[resource]
        generated = obj.metadata.generate_name and not obj.metadata.name
        attempts = MAX_GENERATED_NAMES if generated else 1
        for attempt in range(attempts):
            try:
                return await self._create(steps, namespace, obj, info, managers)
            except RevisionConflictError:
                raise
            except StorageError as error:
                raise api_error_for(error) from error
            except ApiError as error:
                if error.reason != "AlreadyExists" or attempt + 1 == attempts:
                    raise
        raise AssertionError("unreachable")

    async def _create(
        self,
        steps: WriteSteps,
        namespace: str,
        obj: Any,
        info: RequestInfo,
        managers: tuple[dict[str, Any], ...],
    ) -> Written:
        resource, codec, admission = steps.resource, steps.codec, steps.admission
        for _ in range(MAX_TRIES):
            home: StoredObject | None = None
            if resource.namespaced:
                caches = self._caches
                home = caches.current_namespace(namespace) or await caches.namespace(namespace)
                if home is None:
                    raise api_errors.not_found(self._caches.namespaces, namespace)
            proposed: Any = obj
            mutation_warnings: tuple[str, ...] = ()
            seen, size = info, info.size
            if not admission.activity.is_idle:
                await admission.prepare(info)
            if admission.mutates(info):
                key = ObjectKey(namespace, obj.metadata.name or obj.metadata.generate_name)
                attributes = AdmissionAttributes("create", resource, key, obj, None, info)
                mutated = await admission.mutate(attributes)
                proposed, mutation_warnings = mutated.object, mutated.warnings
                if mutated.changed_size or mutated.grown_by:
                    size = work_after(mutated, resource, size)
                    seen = replace(info, size=size)
            request = self._requests.make(info, namespace, home)
            if size <= LARGE:
                new, warnings = self._prepared(resource, proposed, request)
            else:
                new, warnings = await self._workers.run(
                    size, partial(self._prepared, resource, proposed, request)
                )
            metadata = replace(
                new.metadata,
                uid=new.metadata.uid or new_uid(),
                creation_timestamp=request.now,
                managed_fields=managers,
            )
            new = codec.with_metadata(new, metadata)
            key = ObjectKey(namespace, metadata.name)
            if home is not None and home.object.is_terminating:
                raise api_errors.namespace_is_terminating(resource, metadata.name, namespace)
            attributes = AdmissionAttributes("create", resource, key, new, None, seen)
            operations: tuple[Operation, ...] = ()
            if steps.hooks:
                begun = await begin(steps.hooks, attributes)
                attributes, operations = replace(attributes, new=begun.object), begun.operations
            if admission.validates():
                try:
                    admitted = await admission.validate(attributes)
                except ApiError as error:
                    error.warnings[:0] = mutation_warnings
                    raise
                operations += admitted.operations
                warnings = [*warnings, *admitted.warnings]
            to_store = attributes.new
            if steps.is_converted:
                to_store = await self._converter.to_store(resource, to_store)
            if admission.charges():
                async with self._creation_lock(namespace) or nullcontext():
                    operations += (await admission.charge(attributes)).operations
                    stored = await self._store_new(steps, key, to_store, seen, home, operations)
            else:
                stored = await self._store_new(steps, key, to_store, seen, home, operations)
            if stored is not None:
                if steps.is_converted:
                    stored = await self._converter.shown(resource, stored)
                return Written(stored, [*mutation_warnings, *warnings])
            # the namespace or a quota changed meanwhile
        raise api_errors.conflict(resource, obj.metadata.name, api_errors.MODIFIED)

    async def _store_new(
        self,
        steps: WriteSteps,
        key: ObjectKey,
        new: Any,
        info: RequestInfo,
        home: StoredObject | None,
        more: tuple[Operation, ...],
    ) -> StoredObject | None:
        """The stored object; None if something else changed that it depends on."""
        resource, codec = steps.resource, steps.codec
        store_key = self._caches.key(resource, *key)
        if info.size <= LARGE:
            body = encode_for_storage(codec, new)
        else:
            body = await self._workers.run(info.size, lambda: encode_for_storage(codec, new))
        if info.dry_run:
            if await self._caches.get(resource, store_key) is not None:
                raise api_errors.already_exists(resource, key.name)
            return StoredObject(Entry(store_key, body, MISSING, MISSING), codec)
        if home is not None:
            more += (Check(home.key, home.revision),)
        try:
            revision = await self._writer(info)(Put(store_key, body, MISSING), *more)
        except RevisionConflictError as error:
            if error.key == store_key:
                raise api_errors.already_exists(resource, key.name) from None
            return None
        return self._caches.written(resource, Entry(store_key, body, revision, revision), new)

    def _prepared(
        self, resource: Resource, obj: Any, request: WriteRequest
    ) -> tuple[Any, list[str]]:
        outcome = pipeline_for(resource).create(obj, request)
        new, warnings = accepted(outcome, resource, obj.metadata.name)
        if resource.info.is_typed:
            warnings = [*warnings, *self._rule_warnings.about(new)]
        return new, warnings

    # --- update ---

    async def update(
        self,
        resource: Resource,
        key: ObjectKey,
        *updates: RequestedUpdate,
    ) -> Written:
        """Replace an object by what an update makes of it, starting over after a write conflict.

        Of several updates each applies to the result of the one before. They are stored together, or not at all.
        """
        steps = self._updates[resource]
        admission, calls_webhooks = steps.admission, steps.is_converted
        if not admission.activity.is_idle:
            for _, info in updates:
                await admission.prepare(info)
                calls_webhooks |= admission.calls_webhooks(info)
        store_key = self._caches.key(resource, *key)
        attempt = partial(self._try_update, steps, key, updates)
        if calls_webhooks:
            # They may take long: other updates of the object do not wait for this one.
            return await self._retry_on_conflict(resource, key, store_key, attempt)
        if not self._turns.take_free(store_key):
            await self._turns.take(store_key)
        try:
            return await self._retry_on_conflict(resource, key, store_key, attempt)
        finally:
            self._turns.leave(store_key)

    async def _retry_on_conflict(
        self,
        resource: Resource,
        key: ObjectKey,
        store_key: str,
        attempt: Callable[[StoredObject], Awaitable[Written | None]],
    ) -> Written:
        """Run `attempt` on the stored object, again after every write conflict."""
        try:
            for _ in range(MAX_TRIES):
                cache = self._caches.of(resource)  # custom resources get another when they change
                if not cache.is_current:
                    await cache.refresh()
                stored = cache.get(store_key)
                if stored is None:
                    raise api_errors.MissingObjectError(resource, key.name)
                written = await attempt(stored)
                if written is not None:
                    return written
        except RevisionConflictError:
            raise
        except StorageError as error:
            raise api_error_for(error) from error
        raise api_errors.conflict(resource, key.name, api_errors.MODIFIED)

    async def _try_update(
        self,
        steps: WriteSteps,
        key: ObjectKey,
        updates: tuple[RequestedUpdate, ...],
        stored: StoredObject,
    ) -> Written | None:
        """The outcome; None after a write conflict."""
        resource, codec, admission = steps.resource, steps.codec, steps.admission
        # Only DRA kinds ask what their namespace grants.
        asks_namespace = key.namespace and resource.info.is_typed
        home = await self._caches.namespace(key.namespace) if asks_namespace else None
        entry = stored.entry
        stored_size, stored_work = len(entry.value), json_work(entry.value)
        shown = await self._converter.shown(resource, stored) if steps.is_converted else stored
        new, gone = shown.object if shown.is_decoded else await self._decoded(shown), False
        warnings: list[str] = []
        operations: tuple[Operation, ...] = ()
        for update, info in updates:
            request = self._requests.make(info, key.namespace, home, stored_size)
            old, seen, size = new, info, info.size + stored_work
            if size <= LARGE and not admission.mutates(info):
                new, noted = completed(update, update.propose(old, request), old, request, resource)
            else:
                if stored_work > LARGE:
                    seen = replace(info, size=size)
                attributes = AdmissionAttributes("update", resource, key, None, old, seen)
                new, noted, size = await self._updated(steps, attributes, update, request, size)
                if size > LARGE:
                    seen = replace(info, size=size)
            if steps.hooks:
                attributes = AdmissionAttributes("update", resource, key, new, old, seen)
                begun = await begin(steps.hooks, attributes)
                operations += begun.operations
                if begun.object is not new:
                    new = with_known_times(begun.object, old, codec)
            gone = deletion.is_finished(new)
            warnings += noted
            attributes = AdmissionAttributes("update", resource, key, new, old, seen, gone)
            if admission.validates():
                admitted = await admission.validate(attributes)
                operations += admitted.operations
                warnings += admitted.warnings
            if admission.charges():
                operations += (await admission.charge(attributes)).operations
            if gone:
                break
        if steps.is_converted:
            new = await self._converter.to_store(resource, new)
        if size <= LARGE:
            body = encode_for_storage(codec, new)
        else:
            body = await self._workers.run(size, lambda: encode_for_storage(codec, new))
        if body == stored.without_revision(codec, codec.storage_version):
            return Written(shown, warnings)
        if info.dry_run:
            written = StoredObject(replace(entry, value=body), codec)
            return Written(await self._converter.shown(resource, written), warnings, gone)
        revision = await self._replace(info, stored, None if gone else body, operations)
        if revision is None:
            return None
        entry = Entry(stored.key, body, revision, entry.created)
        written = StoredObject(entry, codec) if gone else self._caches.written(resource, entry, new)
        if steps.is_converted:
            written = await self._converter.shown(resource, written)
        return Written(written, warnings, gone)

    async def _decoded(self, stored: StoredObject) -> Any:
        """The object, which is not decoded yet; a large one is decoded in a thread."""
        return await self._workers.run(json_work(stored.entry.value), lambda: stored.object)

    async def _updated(
        self,
        steps: WriteSteps,
        attributes: AdmissionAttributes,
        update: Update,
        request: WriteRequest,
        size: int,
    ) -> tuple[Any, list[str], int]:
        """What the update makes of the stored object, after mutating admission and the write pipeline; warnings; the work on it."""
        resource, admission, old = steps.resource, steps.admission, attributes.old

        def complete(proposed: Any) -> tuple[Any, list[str]]:
            return completed(update, proposed, old, request, resource)

        if not admission.mutates(attributes.info):
            new, warnings = await self._workers.run(
                size, lambda: complete(update.propose(old, request))
            )
            return new, warnings, size
        proposed = await self._workers.run(size, lambda: update.propose(old, request))
        mutated = await admission.mutate(replace(attributes, new=proposed))
        size = work_after(mutated, resource, size)
        new, warnings = await self._workers.run(size, lambda: complete(mutated.object))
        return new, [*mutated.warnings, *warnings], size

    # --- delete ---

    async def delete(
        self, resource: Resource, key: ObjectKey, options: DeleteOptions, info: RequestInfo
    ) -> Written:
        return await self._retry_on_conflict(
            resource,
            key,
            self._caches.key(resource, *key),
            lambda stored: self._try_delete(self._deletes[resource], key, stored, options, info),
        )

    async def _try_delete(
        self,
        steps: WriteSteps,
        key: ObjectKey,
        stored: StoredObject,
        options: DeleteOptions,
        info: RequestInfo,
    ) -> Written | None:
        resource, codec, admission = steps.resource, steps.codec, steps.admission
        shown = await self._converter.shown(resource, stored)
        old = shown.object if shown.is_decoded else await self._decoded(shown)
        deletion.check_preconditions(options, old.metadata, resource)
        outcome = deletion.delete_outcome(old, codec, options, self._clock())
        gone = isinstance(outcome, Gone)
        stored_work = json_work(stored.entry.value)
        seen = info if stored_work <= LARGE else replace(info, size=info.size + stored_work)
        attributes = AdmissionAttributes("delete", resource, key, None, old, seen, gone, options)
        warnings: list[str] = []
        await admission.prepare(info)
        if admission.mutates(info):
            warnings += (await admission.mutate(attributes)).warnings
        admitted = await admission.validate(attributes)
        warnings += admitted.warnings
        body = (
            stored.entry.value
            if isinstance(outcome, Gone)
            else codec.encode(
                await self._converter.to_store(resource, outcome.object), codec.storage_version
            )
        )
        if not gone and body == stored.entry.value:
            return Written(shown, warnings)
        if info.dry_run:
            written = StoredObject(replace(stored.entry, value=body), codec)
            return Written(await self._converter.shown(resource, written), warnings, gone)
        revision = await self._replace(info, stored, None if gone else body, admitted.operations)
        if revision is None:
            return None
        if gone:
            return Written(shown, warnings, gone=True)
        written = StoredObject(Entry(stored.key, body, revision, stored.entry.created), codec)
        return Written(await self._converter.shown(resource, written), warnings)

    async def _replace(
        self,
        info: RequestInfo,
        stored: StoredObject,
        body: bytes | None,
        more: tuple[Operation, ...],
    ) -> int | None:
        """Write `body`, or delete the object if it is None: the revision; None after a write conflict."""
        first: Operation = (
            Delete(stored.key, stored.revision)
            if body is None
            else Put(stored.key, body, stored.revision)
        )
        try:
            return await self._writer(info)(first, *more)
        except RevisionConflictError:
            return None

    def _writer(self, info: RequestInfo) -> Callable[..., Awaitable[int]]:
        """Writes operations: the revision, when it is durable, unless the answer to the request waits for that."""
        return self._store.write if info.awaits_durability else self._store.submit
