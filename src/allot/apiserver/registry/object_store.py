"""Objects in the store: created, changed and deleted so that nothing is lost and nothing overtaken.

Storage errors become API errors here, and only here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.resource import DEVICE_ALREADY_ALLOCATED
from allot.apiserver import api_errors
from allot.apiserver.admission import device_exclusivity
from allot.apiserver.admission.chain import Admission, Attempt
from allot.apiserver.api_errors import ApiError
from allot.apiserver.kinds.request import Caller, WriteRequest
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Workers
from allot.apiserver.registry import deletion
from allot.apiserver.registry.caches import Caches
from allot.apiserver.registry.codecs import Codec, storage_codec
from allot.apiserver.registry.deletion import DeleteOptions, Gone
from allot.apiserver.registry.stored_objects import StoredObject
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.registry.write_pipeline import (
    Accepted,
    Outcome,
    Refused,
    Rejected,
    Update,
    pipeline_for,
)
from allot.features import FeatureGates
from allot.rules import CHECK_CONSUMED_CAPACITY
from allot.storage.interface import (
    MISSING,
    Check,
    CompactedError,
    Delete,
    Entry,
    FutureRevisionError,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
    Store,
    StoreFullError,
    StoreUnavailableError,
)
from allot.validation.consumed_capacity import validate_consumed_capacity
from allot.validation.expressions import ExpressionChecker
from allot.validation.kubernetes_warnings import rule_warnings

MAX_TRIES: Final = 100
"""How often a write that others overtook is done again before the client hears of it."""
NAME_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED_NAMES: Final = 8


class Writer(NamedTuple):
    """Who writes, in which version, and whether it is meant."""

    caller: Caller
    version: str
    verb: str
    dry_run: bool = False
    size: int = 0
    """How much work the request makes, in bytes; that of the stored object comes on top."""


class Written(NamedTuple):
    """The object after a write, and what the client should hear about it."""

    stored: StoredObject
    warnings: list[str]
    gone: bool = False

    def with_warnings(self, first: list[str]) -> Written:
        """The same, after what was noticed when the request was read."""
        return self._replace(warnings=[*first, *self.warnings]) if first else self


class ObjectStore:
    """All writes of one API server."""

    def __init__(
        self,
        store: Store,
        caches: Caches,
        gates: FeatureGates,
        expressions: ExpressionChecker,
        admission: Admission,
        workers: Workers,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC).replace(microsecond=0),
    ) -> None:
        self._store = store
        self._caches = caches
        self._gates = gates
        self._expressions = expressions
        self._admission = admission
        self._workers = workers
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def clock(self) -> Callable[[], datetime]:
        return self._clock

    # --- create ---

    async def create(self, resource: Resource, namespace: str, obj: Any, writer: Writer) -> Written:
        """Store a new object; its name may be generated."""
        generated = not obj.metadata.name and bool(obj.metadata.generate_name)
        attempts = MAX_GENERATED_NAMES if generated else 1
        for attempt in range(attempts):
            try:
                with api_errors_for_storage():
                    async with self._admission.turn(namespace):
                        return await self._create(resource, namespace, obj, writer)
            except ApiError as error:
                if error.reason != "AlreadyExists" or attempt + 1 == attempts:
                    raise
        raise AssertionError("unreachable")

    async def _create(
        self, resource: Resource, namespace: str, obj: Any, writer: Writer
    ) -> Written:
        codec = storage_codec(resource)
        for _ in range(MAX_TRIES):
            home = await self._namespace(resource, namespace)
            request = self._request(writer, namespace, home)
            if writer.size <= LARGE:
                new, warnings = self._prepared(resource, obj, request)
            else:
                new, warnings = await self._workers.run(
                    writer.size, partial(self._prepared, resource, obj, request)
                )
            metadata = replace(new.metadata, uid=new_uid(), creation_timestamp=self._clock())
            new = codec.with_metadata(new, metadata)
            name = metadata.name
            if home is not None and home.object.is_terminating:
                raise api_errors.namespace_is_terminating(resource, name, namespace)
            attempt = Attempt("create", resource, ObjectKey(namespace, name), new, None, writer)
            admitted = await self._admission.admit(attempt)
            new = admitted.object
            key = self._caches.key(resource, namespace, name)
            body = await self._encoded(codec, new, writer.size)
            if writer.dry_run:
                await self._refuse_existing(resource, key, name)
                entry = Entry(key, body, MISSING, MISSING)
                return Written(StoredObject(entry, codec), [*warnings, *admitted.warnings])
            operations: list[Operation] = [Put(key, body, MISSING), *admitted.operations]
            if home is not None:
                operations.append(Check(home.key, home.revision))
            try:
                revision = await self._store.write(*operations)
            except RevisionConflictError as error:
                if error.key == key:
                    raise api_errors.already_exists(resource, name) from None
                continue  # the namespace or a quota changed meanwhile
            entry = Entry(key, body, revision, revision)
            return Written(StoredObject(entry, codec), [*warnings, *admitted.warnings])
        raise api_errors.conflict(resource, obj.metadata.name, api_errors.MODIFIED)

    def _prepared(
        self, resource: Resource, obj: Any, request: WriteRequest
    ) -> tuple[Any, list[str]]:
        outcome = pipeline_for(resource).create(obj, request)
        new, warnings = _accepted(outcome, resource, obj.metadata.name)
        return new, [*warnings, *rule_warnings(new, self._gates)]

    async def _encoded(self, codec: Codec, obj: Any, size: int) -> bytes:
        if size <= LARGE:
            return codec.encode(obj, codec.storage_version)
        return await self._workers.run(size, lambda: codec.encode(obj, codec.storage_version))

    async def _namespace(self, resource: Resource, namespace: str) -> StoredObject | None:
        """The namespace a new object goes to; None for kinds that have none."""
        if not resource.namespaced:
            return None
        stored = await self._caches.namespace(namespace)
        if stored is None:
            raise api_errors.not_found(self._caches.namespaces, namespace)
        return stored

    async def _refuse_existing(self, resource: Resource, key: str, name: str) -> None:
        if await self._caches.get(resource, key) is not None:
            raise api_errors.already_exists(resource, name)

    # --- update ---

    async def update(
        self,
        resource: Resource,
        key: ObjectKey,
        update: Update,
        writer: Writer,
    ) -> Written:
        """Replace an object by what `update` makes of it, starting over after a write conflict."""
        lock = self._locks.setdefault(self._caches.key(resource, *key), asyncio.Lock())
        async with lock:
            return await self._until_not_overtaken(
                resource,
                key,
                lambda stored: self._try_update(resource, key, stored, update, writer),
            )

    async def _until_not_overtaken(
        self,
        resource: Resource,
        key: ObjectKey,
        attempt: Callable[[StoredObject], Awaitable[Written | None]],
    ) -> Written:
        """Do to the object as it is what `attempt` does, again whenever somebody else was quicker."""
        store_key = self._caches.key(resource, *key)
        with api_errors_for_storage():
            for _ in range(MAX_TRIES):
                stored = await self._caches.get(resource, store_key)
                if stored is None:
                    raise api_errors.not_found(resource, key.name)
                written = await attempt(stored)
                if written is not None:
                    return written
        raise api_errors.conflict(resource, key.name, api_errors.MODIFIED)

    async def _try_update(
        self,
        resource: Resource,
        key: ObjectKey,
        stored: StoredObject,
        update: Update,
        writer: Writer,
    ) -> Written | None:
        """The outcome, or None if somebody else was quicker."""
        codec = storage_codec(resource)
        home = await self._caches.namespace(key.namespace) if key.namespace else None
        request = self._request(writer, key.namespace, home)
        size = writer.size + len(stored.entry.value)
        new, warnings = await self._workers.run(
            size, lambda: self._changed(resource, key, stored.object, update, request)
        )
        attempt = Attempt("update", resource, key, new, stored.object, writer)
        admitted = await self._admission.admit(attempt)
        warnings = [*warnings, *admitted.warnings]
        new = admitted.object
        body = await self._encoded(codec, new, size)
        if body == stored.without_revision(codec, codec.storage_version):
            return Written(stored, warnings)
        gone = deletion.is_finished(new)
        if writer.dry_run:
            entry = stored.entry._replace(value=body)
            return Written(StoredObject(entry, codec), warnings, gone)
        try:
            operations = await self._with_devices(
                resource, key, stored.object, None if gone else new
            )
            first: Operation = (
                Delete(stored.key, stored.revision)
                if gone
                else Put(stored.key, body, stored.revision)
            )
            revision = await self._store.write(first, *admitted.operations, *operations)
        except RevisionConflictError:
            return None
        entry = Entry(stored.key, body, revision, stored.entry.created)
        return Written(StoredObject(entry, codec), warnings, gone)

    def _changed(
        self,
        resource: Resource,
        key: ObjectKey,
        old: Any,
        update: Update,
        request: WriteRequest,
    ) -> tuple[Any, list[str]]:
        outcome = update.complete(update.propose(old, request), old, request)
        new, warnings = _accepted(outcome, resource, key.name)
        if getattr(new, "spec", None) == getattr(old, "spec", None):
            return new, warnings
        return new, [*warnings, *rule_warnings(new, self._gates)]

    # --- delete ---

    async def delete(
        self, resource: Resource, key: ObjectKey, options: DeleteOptions, writer: Writer
    ) -> Written:
        return await self._until_not_overtaken(
            resource, key, lambda stored: self._try_delete(resource, key, stored, options, writer)
        )

    async def _try_delete(
        self,
        resource: Resource,
        key: ObjectKey,
        stored: StoredObject,
        options: DeleteOptions,
        writer: Writer,
    ) -> Written | None:
        codec = storage_codec(resource)
        old = stored.object
        deletion.check_preconditions(options, old.metadata, resource)
        outcome = deletion.delete_outcome(old, codec, options, self._clock())
        attempt = Attempt("delete", resource, key, None, old, writer)
        admitted = await self._admission.admit(attempt)
        gone = isinstance(outcome, Gone)
        body = (
            stored.entry.value
            if isinstance(outcome, Gone)
            else codec.encode(outcome.object, codec.storage_version)
        )
        if not gone and body == stored.entry.value:
            return Written(stored, [])
        if writer.dry_run:
            return Written(StoredObject(stored.entry._replace(value=body), codec), [], gone)
        try:
            operations: list[Operation] = list(admitted.operations)
            if gone:
                operations += await self._with_devices(resource, key, old, None)
            first: Operation = (
                Delete(stored.key, stored.revision)
                if gone
                else Put(stored.key, body, stored.revision)
            )
            revision = await self._store.write(first, *operations)
        except RevisionConflictError:
            return None
        if gone:
            return Written(stored, [], gone=True)
        entry = Entry(stored.key, body, revision, stored.entry.created)
        return Written(StoredObject(entry, codec), [])

    # --- devices ---

    async def _with_devices(
        self, resource: Resource, key: ObjectKey, old: Any, new: Any
    ) -> list[Operation]:
        """What must be written along with a claim, so that no device is held twice."""
        if not isinstance(old, ResourceClaim):
            return []
        devices = device_exclusivity.touched_devices(old, new)
        if not devices:
            return []
        entries = {
            device: await self._store.get(device_exclusivity.record_key(device))
            for device in devices
        }
        published = await self._caches.published_devices(devices)
        checks_shares = CHECK_CONSUMED_CAPACITY in self._gates
        if isinstance(new, ResourceClaim):
            errors = list(validate_consumed_capacity(new, old, published, self._gates))
            if errors:
                raise api_errors.invalid(resource.group, resource.kind, key.name, errors)
        changed = device_exclusivity.changed_records(
            old, new, entries, published, checks_shares=checks_shares
        )
        if isinstance(changed, device_exclusivity.AlreadyHeld):
            cause = api_errors.Cause(
                DEVICE_ALREADY_ALLOCATED,
                str(changed.device),
                "status.allocation.devices.results",
            )
            raise api_errors.conflict(resource, key.name, changed.message, [cause])
        return changed

    def _request(self, writer: Writer, namespace: str, home: StoredObject | None) -> WriteRequest:
        return WriteRequest(
            gates=self._gates,
            version=writer.version,
            expressions=self._expressions,
            now=self._clock(),
            new_name_suffix=new_name_suffix,
            caller=writer.caller,
            verb=writer.verb,
            namespace=namespace,
            namespace_labels=home.object.metadata.labels if home is not None else {},
        )


def new_name_suffix() -> str:
    """Five characters that make no words."""
    return "".join(random.choices(NAME_CHARACTERS, k=5))  # noqa: S311 - nobody relies on it


def _accepted(outcome: Outcome, resource: Resource, name: str) -> tuple[Any, list[str]]:
    match outcome:
        case Accepted(obj, warnings):
            return obj, warnings
        case Rejected(errors):
            raise api_errors.invalid(resource.group, resource.kind, name, errors)
        case Refused(409, _, message):
            raise api_errors.conflict(resource, name, message)
        case Refused(code, reason, message):
            raise ApiError(code, reason, message)


class api_errors_for_storage:  # noqa: N801 - used like a function
    """Storage trouble in the words of the API. Conflicts are the caller's to resolve."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        match error:
            case None | RevisionConflictError():
                return
            case CompactedError(revision=revision, oldest=oldest):
                raise api_errors.too_old(revision, oldest) from error
            case FutureRevisionError(revision=revision, current=current):
                raise api_errors.too_large(revision, current) from error
            case StoreFullError():
                raise api_errors.unavailable(f"the storage is full: {error}") from error
            case StoreUnavailableError():
                raise api_errors.unavailable(f"the storage does not answer: {error}") from error
            case StorageError():
                raise api_errors.internal(str(error)) from error
