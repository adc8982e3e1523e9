"""Keeps the published slices of pools as a driver wants them: creates, repairs and deletes them.

What a pool should have is asked for whenever it is reconciled; who asks and when is decided by `publisher` for described
hardware, and by `resource_slices` for drivers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from allot.api.core import Node
from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.api.slices import ResourceSlice, ResourceSliceSpec
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.informer import Informer
from allot.client.options import DeleteOptions
from allot.client.resources import Resource
from allot.client.work_queue import WorkQueue, run_workers
from allot.driver.hardware import PoolKey
from allot.driver.publishing import SliceMarks, SliceWrites, dropped_fields, plan_pool

log = logging.getLogger(__name__)

WORKERS: Final = 8
REPAIR_SECONDS: Final = 30.0
"""Delay before changes by other clients are reverted."""
DROPPED_FIELDS_RETRY_SECONDS: Final = 60.0
"""How often fields and classes that the server dropped or rejected are retried: its feature gates may have changed."""
CONFLICT_SECONDS: Final = 0.2
FAILURES: Final = Backoff(initial_seconds=0.2, max_seconds=60.0, jitter=0.0)
_BY_POOL: Final = "pool"


class DroppedFieldsError(Exception):
    """The server stored a pool without fields whose feature gate is disabled. It is retried."""

    def __init__(self, key: PoolKey, fields: Sequence[str]) -> None:
        super().__init__(
            f"pool {key.pool} of {key.driver}: the server drops {', '.join(fields)}; is a feature gate disabled?"
        )
        self.key, self.fields = key, tuple(fields)


class RejectedPoolError(Exception):
    """The server rejects a pool as invalid. It is not retried until the pool changes."""

    def __init__(self, key: PoolKey, error: ApiStatusError) -> None:
        super().__init__(f"pool {key.pool} of {key.driver} is not published: {error}")
        self.key = key


class WantedPool(NamedTuple):
    """What should be published of a pool: its slices without a generation. Empty: the pool is deleted."""

    slices: tuple[ResourceSliceSpec, ...]
    marks: SliceMarks
    generation: int = 0
    """At least this generation."""


def log_problem(error: Exception) -> None:
    """The default of error callbacks."""
    level = logging.WARNING if isinstance(error, DroppedFieldsError) else logging.ERROR
    log.log(level, "%s", error)


class SliceReconciler:
    """Reconciles the pools in its queue until cancelled."""

    def __init__(
        self,
        client: Client,
        resource: Resource[ResourceSlice],
        slices: Informer[ResourceSlice],
        wanted: Callable[[PoolKey], WantedPool | None],
        *,
        is_own: Callable[[ResourceSlice], bool],
        visited: Callable[[PoolKey], None],
        on_error: Callable[[Exception], None] = log_problem,
        repair_seconds: float = REPAIR_SECONDS,
    ) -> None:
        """`wanted` is None if nothing can be said about a pool now. `is_own` decides about slices that exist already."""
        self._client = client
        self._resource = resource
        self._slices = slices
        self._wanted = wanted
        self._is_own = is_own
        self._visited = visited
        self._on_error = on_error
        self._repair_seconds = repair_seconds
        self.queue: WorkQueue[PoolKey] = WorkQueue(clock=client.clock, backoff=FAILURES)
        self._unkept: dict[PoolKey, dict[str, str]] = {}
        """resourceVersions of slices from which the server dropped fields: not written again while unchanged."""
        slices.add_index(_BY_POOL, lambda slice_: (_index_value(pool_key(slice_)),))

    async def run(self, workers: int = WORKERS) -> None:
        """Reconcile all pools that are queued or published. The informer must have synced."""
        for key in map(pool_key, self._slices.list()):
            self.queue.add(key)
        followed = self._slices.add_handlers(
            on_add=self._repair,
            on_update=lambda _, slice_: self._repair(slice_),
            on_delete=self._repair,
        )
        try:
            await run_workers(self.queue, self._visit, workers)
        finally:
            self._slices.remove_handlers(followed)

    def _repair(self, slice_: ResourceSlice) -> None:
        self.queue.add_after(pool_key(slice_), self._repair_seconds)

    async def _visit(self, key: PoolKey) -> None:
        if await self._reconcile(key):
            self._visited(key)

    async def _reconcile(self, key: PoolKey) -> bool:
        """Whether the pool is as it should be, or cannot become so."""
        wanted = self._wanted(key)
        if wanted is None:
            return True
        existing = [
            slice_
            for slice_ in self._slices.by_index(_BY_POOL, _index_value(key))
            if self._is_own(slice_)
        ]
        plan = plan_pool(existing, wanted.slices, wanted.marks, wanted.generation)
        versions = _versions(existing)
        if plan.is_empty:
            return True
        try:
            if versions == self._unkept.get(key) and not await self._would_be_kept(plan):
                self.queue.add_after(key, DROPPED_FIELDS_RETRY_SECONDS)
                return True
            written = await self._carry_out(plan)
        except ApiStatusError as error:
            return await self._explain(key, plan, error)
        self._note_unkept(key, versions, written)
        return True

    async def _would_be_kept(self, plan: SliceWrites) -> bool:
        """Whether the server would store all fields now, by a dry run."""
        answers = [
            *[(s, await self._client.update(self._resource, s, dry_run=True)) for s in plan.update],
            *[(s, await self._client.create(self._resource, s, dry_run=True)) for s in plan.create],
        ]
        return not any(dropped_fields(sent, stored) for sent, stored in answers)

    async def _carry_out(self, plan: SliceWrites) -> list[tuple[ResourceSlice, ResourceSlice]]:
        """The slices as sent and as stored."""
        for slice_ in plan.delete:
            await self._delete(slice_)
        return [
            *[(sent, await self._client.update(self._resource, sent)) for sent in plan.update],
            *[(sent, await self._client.create(self._resource, sent)) for sent in plan.create],
        ]

    async def _delete(self, slice_: ResourceSlice) -> None:
        metadata = slice_.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        try:
            await self._client.delete(self._resource, ObjectKey("", metadata.name), options)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    async def _explain(self, key: PoolKey, plan: SliceWrites, error: ApiStatusError) -> bool:
        """Handle an error of a write; unknown errors are retried with a backoff."""
        if error.is_invalid:
            self._on_error(RejectedPoolError(key, error))
            return True
        if error.is_already_exists:
            return await self._meet_others(key, plan)
        if error.is_conflict or error.is_not_found:
            self.queue.add_after(
                key, CONFLICT_SECONDS
            )  # the informer normally has the change by then
        else:
            raise error
        return False

    async def _meet_others(self, key: PoolKey, plan: SliceWrites) -> bool:
        """A slice of that name exists: created by another instance, or by another driver."""
        for slice_ in plan.create:
            found = await self._client.find(self._resource, ObjectKey("", slice_.metadata.name))
            if found is not None and not self._is_own(found):
                log.warning(
                    "resource slice %s already exists and has another owner", slice_.metadata.name
                )
                self.queue.add_after(key, self._repair_seconds)
                return True
        self.queue.add_after(key, CONFLICT_SECONDS)
        return False

    def _note_unkept(
        self,
        key: PoolKey,
        versions: dict[str, str],
        written: list[tuple[ResourceSlice, ResourceSlice]],
    ) -> None:
        self._unkept.pop(key, None)
        dropped = sorted({field for pair in written for field in dropped_fields(*pair)})
        if dropped:
            self._on_error(DroppedFieldsError(key, dropped))
            self._unkept[key] = versions | _versions(stored for _, stored in written)
            self.queue.add_after(key, DROPPED_FIELDS_RETRY_SECONDS)


def _versions(slices: Iterable[ResourceSlice]) -> dict[str, str]:
    return {slice_.metadata.name: slice_.metadata.resource_version for slice_ in slices}


def pool_key(slice_: ResourceSlice) -> PoolKey:
    return PoolKey(slice_.spec.driver, slice_.spec.pool.name)


def _index_value(key: PoolKey) -> str:
    return f"{key.driver} {key.pool}"


def owner_reference(node: Node) -> OwnerReference:
    metadata = node.metadata
    return OwnerReference("v1", "Node", metadata.name, metadata.uid, controller=True)
