"""The claim write queue: one writer per claim, and one write for all changes that wait.

    pod 1 ─ change ─┐
    pod 2 ─ change ─┼─► queue of the claim ─► all of them, applied to the newest version ─► one write
    pod 3 ─ change ─┘

Without it the bindings of pods that share a claim would conflict: of n writes for one version n - 1 fail. Remaining
conflicts come from other clients; then the claim is read again, and the changes are applied to its current version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client.errors import ApiStatusError, ClientError
from allot.client.resources import RESOURCE_CLAIMS
from allot.client.retries import is_worth_repeating
from allot.client.transport import Response
from allot.scheduler.state.claim_tracker import version_of

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.scheduler.framework.ordered_binding import OrderedBinding

ATTEMPTS: Final = 8
CONFLICT_BACKOFF: Final = Backoff(initial_seconds=0.005, max_seconds=1.0)
"""From the second conflict on; the first one is retried at once."""


class ClaimChangedError(Exception):
    """Another client changed the claim so that our decision no longer holds."""


ClaimChange = Callable[[ResourceClaim], ResourceClaim]
"""What a claim shall become. Its argument comes back if nothing is to be written; `ClaimChangedError` if it cannot be.

It may be called several times for one write, and for a claim that has the change already.
"""
LookupClaim = Callable[[ObjectKey], ResourceClaim | None]
"""The newest version of a claim that has been seen."""


class _PendingChange(msgspec.Struct, eq=False):
    """A change that waits to be written."""

    start: ResourceClaim
    change: ClaimChange
    binding: OrderedBinding | None
    outcome: ResourceClaim | Exception | None = None


class _QueueOfClaim:
    """The changes of one claim."""

    def __init__(self) -> None:
        self.waiting: list[_PendingChange] = []
        self.slot = asyncio.Lock()
        self.users = 0
        self.latest: ResourceClaim | None = None
        """The answer to the last write."""


class ClaimWriteQueue:
    """All claims that are being written. For use in one event loop."""

    def __init__(self, client: Client, known: LookupClaim) -> None:
        self._client = client
        self._known = known
        self._queues: dict[ObjectKey, _QueueOfClaim] = {}

    def __len__(self) -> int:
        return len(self._queues)

    async def write(
        self, start: ResourceClaim, change: ClaimChange, binding: OrderedBinding | None = None
    ) -> ResourceClaim:
        """The claim after the change and those that were written with it.

        `start` names the claim, and saves a read if nothing newer is known; it may be out of date. `binding` is sent
        with the first write, unless that is for several pods.
        """
        key = start.key
        queue = self._queues.setdefault(key, _QueueOfClaim())
        queue.users += 1
        own = _PendingChange(start, change, binding)
        queue.waiting.append(own)
        try:
            async with queue.slot:
                if own.outcome is None:
                    await self._write_waiting(key, queue, own)
        finally:
            if own in queue.waiting:
                queue.waiting.remove(own)  # cancelled before its turn
            queue.users -= 1
            if not queue.users:
                del self._queues[key]
        assert own.outcome is not None
        if isinstance(own.outcome, Exception):
            raise own.outcome
        return own.outcome

    async def _write_waiting(
        self, key: ObjectKey, queue: _QueueOfClaim, own: _PendingChange
    ) -> None:
        batch, queue.waiting = queue.waiting, []
        # Only its own task may send a binding: it ends with that task.
        binding = own.binding if len(batch) == 1 else None
        try:
            await self._write_batch(key, queue, batch, binding)
        except BaseException:
            # This task ends, the others' changes stay. They see whether the write arrived: by a conflict.
            left = [each for each in batch if each.outcome is None and each is not own]
            queue.waiting = left + queue.waiting
            raise

    async def _write_batch(
        self,
        key: ObjectKey,
        queue: _QueueOfClaim,
        batch: list[_PendingChange],
        binding: OrderedBinding | None = None,
    ) -> None:
        current = self._newest(key, queue, batch)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write_once(current, queue, batch, binding)
                return
            except ApiStatusError as error:
                if not error.is_conflict and len(batch) > 1:
                    await self._write_apart(key, queue, batch)
                    return
                if not error.is_conflict or attempt == ATTEMPTS:
                    _fail(batch, error)
                    return
            except ClientError as error:
                _fail(batch, error)
                return
            binding = None
            if attempt > 1:
                await self._client.clock.sleep(CONFLICT_BACKOFF.seconds(attempt - 1))
            try:
                current = await self._client.get(RESOURCE_CLAIMS, key)
            except ClientError as error:
                _fail(batch, error)
                return

    async def _write_apart(
        self, key: ObjectKey, queue: _QueueOfClaim, batch: list[_PendingChange]
    ) -> None:
        """The server refuses the changes together: one that it refuses alone shall not cost the others theirs."""
        for each in batch:
            if each.outcome is None:
                await self._write_batch(key, queue, [each])

    async def _write_once(
        self,
        current: ResourceClaim,
        queue: _QueueOfClaim,
        batch: list[_PendingChange],
        binding: OrderedBinding | None,
    ) -> None:
        """The finalizer first if a change brings one, then the status; both at once if the server can."""
        wanted = _applied(current, batch)
        if wanted is current:
            return
        brings_finalizer = wanted.metadata.finalizers != current.metadata.finalizers
        if self._client.updates_with_status:
            written = await self._write_at_once(wanted, brings_finalizer, binding)
        else:
            if brings_finalizer:
                protected = replace(current, metadata=wanted.metadata)
                current = await self._client.update(RESOURCE_CLAIMS, protected)
                wanted = _applied(current, batch)
                if wanted is current:
                    return
            written = await self._client.update_status(RESOURCE_CLAIMS, wanted)
        queue.latest = written
        for each in batch:
            if each.outcome is None:
                each.outcome = written

    async def _write_at_once(
        self, wanted: ResourceClaim, brings_finalizer: bool, binding: OrderedBinding | None
    ) -> ResourceClaim:
        """In one request, which the binding follows if the server can."""
        submit = partial(_submit, wanted, brings_finalizer)
        try:
            sent = binding.follow(submit) if binding is not None else None
            if sent is not None:
                return self._client.updated(RESOURCE_CLAIMS, wanted, await sent)
        except ClientError as error:  # a link that is lost says so when it is asked to send
            if not is_worth_repeating(error, may_repeat=True):
                raise
        return self._client.updated(RESOURCE_CLAIMS, wanted, await submit(self._client))

    def _newest(
        self, key: ObjectKey, queue: _QueueOfClaim, batch: list[_PendingChange]
    ) -> ResourceClaim:
        newest = batch[0].start
        others = [each.start for each in batch[1:]] if len(batch) > 1 else ()
        for claim in (*others, self._known(key), queue.latest):
            if claim is None or claim is newest:
                continue
            if version_of(claim) >= version_of(newest):
                newest = claim
        return newest


def _submit(wanted: ResourceClaim, brings_finalizer: bool, client: Client) -> Awaitable[Response]:
    if brings_finalizer:
        return client.submit_update_with_status(RESOURCE_CLAIMS, wanted)
    return client.submit_update(RESOURCE_CLAIMS, wanted, subresource="status")


def _applied(current: ResourceClaim, batch: list[_PendingChange]) -> ResourceClaim:
    """The claim with all changes that still wait. Those that need no write, or cannot be, are settled."""
    wanted = current
    for each in batch:
        if each.outcome is not None:
            continue
        try:
            changed = each.change(wanted)
        except ClaimChangedError as error:
            each.outcome = error
            continue
        if changed is current:
            each.outcome = current
        wanted = changed
    return wanted


def _fail(batch: list[_PendingChange], error: ClientError) -> None:
    for each in batch:
        if each.outcome is None:
            each.outcome = error
