"""The registry: creates, updates and deletes stored objects, with optimistic concurrency.

Storage errors become API errors in `storage_errors`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, Admission, AdmissionAttributes
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.request import RequestInfo, WriteRequest
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Workers, json_work
from allot.apiserver.registry import deletion
from allot.apiserver.registry.begin_hooks import BeginHooks
from allot.apiserver.registry.conversion import Converter, is_converted
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
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.codecs import storage_codec
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
        self._admission = admission
        self._hooks = hooks
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
        generated = not obj.metadata.name and bool(obj.metadata.generate_name)
        attempts = MAX_GENERATED_NAMES if generated else 1
        for attempt in range(attempts):
            try:
                return await self._create(resource, namespace, obj, info, managers)
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
        resource: Resource,
        namespace: str,
        obj: Any,
        info: RequestInfo,
        managers: tuple[dict[str, Any], ...],
    ) -> Written:
        codec, converts = storage_codec(resource), is_converted(resource)
        for _ in range(MAX_TRIES):
            home = await self._namespace(resource, namespace)
            proposed: Any = obj
            key: ObjectKey | None = None
            mutation_warnings: tuple[str, ...] = ()
            size = info.size
            if not self._admission.activity.is_idle:
                await self._admission.prepare("create", resource, info)
            if self._admission.mutates("create", resource, info):
                key = ObjectKey(namespace, obj.metadata.name or obj.metadata.generate_name)
                attributes = AdmissionAttributes("create", resource, key, obj, None, info)
                mutated = await self._admission.mutate(attributes)
                proposed, mutation_warnings = mutated.object, mutated.warnings
                if mutated.changed_size or mutated.grown_by:
                    size = work_after(mutated, resource, size)
            request = self._requests.make(info, namespace, home)
            worked = info if size == info.size else replace(info, size=size)
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
            name = metadata.name
            if home is not None and home.object.is_terminating:
                raise api_errors.namespace_is_terminating(resource, name, namespace)
            if key is None or key.name != name:
                key = ObjectKey(namespace, name)
            attributes = AdmissionAttributes("create", resource, key, new, None, worked)
            operations: tuple[Operation, ...] = ()
            if self._hooks.are_for("create", resource):
                begun = await self._hooks.begin(attributes)
                attributes, operations = replace(attributes, new=begun.object), begun.operations
            admitted = ADMITTED
            if self._admission.validates("create", resource):
                try:
                    admitted = await self._admission.validate(attributes)
                except ApiError as error:
                    error.warnings[:0] = mutation_warnings
                    raise
            warnings = [*mutation_warnings, *warnings, *admitted.warnings]
            to_store = attributes.new
            if converts:
                to_store = await self._converter.to_store(resource, to_store)
            operations += admitted.operations
            lock = self._admission.creation_lock(namespace)
            if lock is None:
                stored = await self._store_new(attributes, to_store, home, operations, codec)
            else:
                async with lock:
                    stored = await self._store_new(attributes, to_store, home, operations, codec)
            if stored is not None:
                if converts:
                    stored = await self._converter.shown(resource, stored)
                return Written(stored, warnings)
            # the namespace or a quota changed meanwhile
        raise api_errors.conflict(resource, obj.metadata.name, api_errors.MODIFIED)

    async def _store_new(
        self,
        attributes: AdmissionAttributes,
        new: Any,
        home: StoredObject | None,
        more: tuple[Operation, ...],
        codec: Codec,
    ) -> StoredObject | None:
        """Store `new`, charged to quotas: the stored object; None if something else changed that it depends on."""
        resource, key, info = attributes.resource, attributes.key, attributes.info
        charged = ADMITTED
        if self._admission.charges("create", resource):
            charged = await self._admission.charge(attributes)
        store_key = self._caches.key(resource, *key)
        if info.size <= LARGE:
            body = encode_for_storage(codec, new)
        else:
            body = await self._workers.run(info.size, lambda: encode_for_storage(codec, new))
        if info.dry_run:
            if await self._caches.get(resource, store_key) is not None:
                raise api_errors.already_exists(resource, key.name)
            return StoredObject(Entry(store_key, body, MISSING, MISSING), codec)
        operations: list[Operation] = [Put(store_key, body, MISSING), *more, *charged.operations]
        if home is not None:
            operations.append(Check(home.entry.key, home.entry.revision))
        try:
            revision = await self._writer(info)(*operations)
        except RevisionConflictError as error:
            if error.key == store_key:
                raise api_errors.already_exists(resource, key.name) from None
            return None
        entry = Entry(store_key, body, revision, revision)
        return self._caches.written(resource, entry, new)

    def _prepared(
        self, resource: Resource, obj: Any, request: WriteRequest
    ) -> tuple[Any, list[str]]:
        outcome = pipeline_for(resource).create(obj, request)
        new, warnings = accepted(outcome, resource, obj.metadata.name)
        if resource.info.is_typed:
            warnings = [*warnings, *self._rule_warnings.about(new)]
        return new, warnings

    async def _namespace(self, resource: Resource, namespace: str) -> StoredObject | None:
        """The namespace a new object goes to; None for kinds that have none."""
        if not resource.namespaced:
            return None
        stored = await self._caches.namespace(namespace)
        if stored is None:
            raise api_errors.not_found(self._caches.namespaces, namespace)
        return stored

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
        calls_webhooks = is_converted(resource)
        if not self._admission.activity.is_idle:
            for _, info in updates:
                await self._admission.prepare("update", resource, info)
                calls_webhooks |= self._admission.calls_webhooks("update", resource, info)
        store_key = self._caches.key(resource, *key)
        attempt = partial(self._try_update, resource, key, updates)
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
        resource: Resource,
        key: ObjectKey,
        updates: tuple[RequestedUpdate, ...],
        stored: StoredObject,
    ) -> Written | None:
        """The outcome; None after a write conflict."""
        codec, admission = storage_codec(resource), self._admission
        # Only DRA kinds ask what their namespace grants.
        asks_namespace = key.namespace and resource.info.is_typed
        home = await self._caches.namespace(key.namespace) if asks_namespace else None
        stored_size, stored_work = len(stored.entry.value), json_work(stored.entry.value)
        has_hooks, converts = self._hooks.are_for("update", resource), is_converted(resource)
        shown = await self._converter.shown(resource, stored) if converts else stored
        new, gone = shown.object if shown.is_decoded else await self._decoded(shown), False
        warnings: list[str] = []
        operations: tuple[Operation, ...] = ()
        for update, info in updates:
            request = self._requests.make(info, key.namespace, home, stored_size)
            size = info.size + stored_work
            old = new
            seen = info if stored_work <= LARGE else replace(info, size=size)
            if size <= LARGE and not admission.mutates("update", resource, info):
                proposed = update.propose(old, request)
                new, noted = completed(update, proposed, old, request, resource)
            else:
                attributes = AdmissionAttributes("update", resource, key, None, old, seen)
                new, noted, size = await self._updated(attributes, update, request, size)
            if size > LARGE:
                seen = replace(info, size=size)
            if has_hooks:
                attributes = AdmissionAttributes("update", resource, key, new, old, seen)
                begun = await self._hooks.begin(attributes)
                operations += begun.operations
                if begun.object is not new:
                    new = with_known_times(begun.object, old, codec)
            gone = deletion.is_finished(new)
            warnings += noted
            validates = admission.validates("update", resource)
            if validates or admission.charges("update", resource):
                attributes = AdmissionAttributes("update", resource, key, new, old, seen, gone)
                admitted = await admission.validate(attributes)
                operations += admitted.operations
                warnings += admitted.warnings
                if admission.charges("update", resource):
                    operations += (await admission.charge(attributes)).operations
            if gone:
                break
        if converts:
            new = await self._converter.to_store(resource, new)
        if size <= LARGE:
            body = encode_for_storage(codec, new)
        else:
            body = await self._workers.run(size, lambda: encode_for_storage(codec, new))
        if body == stored.without_revision(codec, codec.storage_version):
            return Written(shown, warnings)
        if info.dry_run:
            written = StoredObject(replace(stored.entry, value=body), codec)
            return Written(await self._converter.shown(resource, written), warnings, gone)
        revision = await self._replace(info, stored, None if gone else body, operations)
        if revision is None:
            return None
        entry = Entry(stored.key, body, revision, stored.entry.created)
        written = StoredObject(entry, codec) if gone else self._caches.written(resource, entry, new)
        if converts:
            written = await self._converter.shown(resource, written)
        return Written(written, warnings, gone)

    async def _decoded(self, stored: StoredObject) -> Any:
        """The object, which is not decoded yet; a large one is decoded in a thread."""
        return await self._workers.run(json_work(stored.entry.value), lambda: stored.object)

    async def _updated(
        self,
        attributes: AdmissionAttributes,
        update: Update,
        request: WriteRequest,
        size: int,
    ) -> tuple[Any, list[str], int]:
        """What the update makes of the stored object, after mutating admission and the write pipeline; warnings; the work on it."""
        resource, old = attributes.resource, attributes.old

        def complete(proposed: Any) -> tuple[Any, list[str]]:
            return completed(update, proposed, old, request, resource)

        if not self._admission.mutates("update", resource, attributes.info):
            new, warnings = await self._workers.run(
                size, lambda: complete(update.propose(old, request))
            )
            return new, warnings, size
        proposed = await self._workers.run(size, lambda: update.propose(old, request))
        mutated = await self._admission.mutate(replace(attributes, new=proposed))
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
            lambda stored: self._try_delete(resource, key, stored, options, info),
        )

    async def _try_delete(
        self,
        resource: Resource,
        key: ObjectKey,
        stored: StoredObject,
        options: DeleteOptions,
        info: RequestInfo,
    ) -> Written | None:
        codec = storage_codec(resource)
        shown = await self._converter.shown(resource, stored)
        old = shown.object if shown.is_decoded else await self._decoded(shown)
        deletion.check_preconditions(options, old.metadata, resource)
        outcome = deletion.delete_outcome(old, codec, options, self._clock())
        gone = isinstance(outcome, Gone)
        stored_work = json_work(stored.entry.value)
        seen = info if stored_work <= LARGE else replace(info, size=info.size + stored_work)
        attributes = AdmissionAttributes("delete", resource, key, None, old, seen, gone, options)
        warnings: list[str] = []
        await self._admission.prepare("delete", resource, info)
        if self._admission.mutates("delete", resource, info):
            warnings += (await self._admission.mutate(attributes)).warnings
        admitted = await self._admission.validate(attributes)
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
