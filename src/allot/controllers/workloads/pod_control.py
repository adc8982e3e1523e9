"""Creating and deleting pods of a workload, with expectations, events and slow start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.cooperative import CALLS_AT_ONCE, few_at_once
from allot.client.errors import ApiStatusError, ClientError
from allot.client.events import NORMAL, WARNING, Recorder, reference_to
from allot.client.options import DeleteOptions
from allot.client.rate_limits import TokenBucket
from allot.client.resources import PODS, Resource
from allot.controllers.workloads.accessors import name_of, uid_of
from allot.controllers.workloads.expectations import Expectations
from allot.controllers.workloads.names import NewSuffix, generated_name, random_suffix
from allot.controllers.workloads.ownership import is_controlled_by
from allot.lru_cache import LRUCache

log = logging.getLogger(__name__)

FIRST_BATCH: Final = 1
BURST_REPLICAS: Final = 500
"""Pods that one sync creates or deletes at most."""


CREATIONS_PER_SECOND: Final = 50.0
MAX_LIMITED_OWNERS: Final = 1000


class CreationRateLimiter:
    """A rate limit of pod creations per owner: a burst, then a number per second.

    A workload with a hundred thousand replicas must not starve other workloads.
    """

    def __init__(self, now: Callable[[], float], again: Callable[[ObjectKey, float], None]) -> None:
        """`again` queues an owner after some seconds."""
        self._now = now
        self._again = again
        self._buckets: LRUCache[str, TokenBucket] = LRUCache(MAX_LIMITED_OWNERS)

    def admit(self, owner: RawObject, wanted: int) -> int:
        """How many of the pods may be created now. For the others, the owner is queued again."""
        now, uid = self._now(), uid_of(owner)
        bucket = self._buckets.get_or_make(
            uid, lambda: TokenBucket(CREATIONS_PER_SECOND, BURST_REPLICAS, now)
        )
        admitted = bucket.take_up_to(now, wanted)
        if admitted < wanted:
            self._again(owner.key, bucket.seconds_to_next(now, CREATIONS_PER_SECOND))
        return admitted


class NameTakenError(ClientError):
    """The generated name belongs to another pod. Generate another one."""


class PodControl:
    """Creates and deletes pods for owners of one resource."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        resource: Resource[Any],
        expectations: Expectations,
        pace: CreationRateLimiter,
        new_suffix: NewSuffix = random_suffix,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._resource = resource
        self._expectations = expectations
        self._pace = pace
        self._new_suffix = new_suffix

    async def create(self, owner: RawObject, pod: Pod, base: str = "") -> Pod:
        """Create a pod with its name, or with a generated one that begins with `base`.

        The name is generated here, not by the server, so that a request can be repeated after a lost response,
        and the creation can be expected by name.
        """
        if base:
            pod = pod.with_value(base, "metadata", "generateName")
            name = generated_name(base, self._new_suffix)
            pod = pod.with_value(name, "metadata", "name")
        key, name = owner.key, name_of(pod)
        self._expectations.expect_creation(key, name)
        try:
            created = await self._create_or_find(owner, pod)
        except BaseException as error:
            self._expectations.created(key, name)
            if isinstance(error, ClientError) and not _is_namespace_going(error):
                self._record_event(
                    owner, WARNING, "FailedCreate", self.create_note(owner, pod, error)
                )
            raise
        self._record_event(owner, NORMAL, "SuccessfulCreate", self.create_note(owner, pod))
        return created

    async def _create_or_find(self, owner: RawObject, pod: Pod) -> Pod:
        try:
            return await self._client.create(PODS, pod)
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise
            found = await self._client.find_listed(PODS, pod.key)
            if found is None or not is_controlled_by(found, owner):
                raise NameTakenError(f'pods "{name_of(pod)}" already exists') from None
            return found

    async def create_all(
        self, owner: RawObject, pods: Sequence[Pod], base: str | Callable[[Pod], str]
    ) -> ClientError | None:
        """Create pods in batches of 1, 2, 4, … until an error, which is returned (slow start).

        Creates as many as the rate limit allows; for the rest the owner is queued again. If one creation fails,
        the others probably fail too, such as by quota.
        """
        names = base if callable(base) else lambda _pod: base
        pods = pods[: self._pace.admit(owner, len(pods))]
        done, size = 0, FIRST_BATCH
        while done < len(pods):
            batch = pods[done : done + size]
            results = await few_at_once(
                lambda pod: self.create(owner, pod, names(pod)), batch, min(size, CALLS_AT_ONCE)
            )
            for result in results:
                if isinstance(result, ClientError):
                    return None if _is_namespace_going(result) else result
                if isinstance(result, Exception):
                    raise result
            done += len(batch)
            size *= 2
        return None

    async def delete(self, owner: RawObject, pod: Pod) -> None:
        """Delete this pod, by uid. Not an error if it is gone already."""
        key, uid = owner.key, uid_of(pod)
        self._expectations.expect_deletion(key, uid)
        try:
            await self._client.delete(PODS, pod.key, DeleteOptions(uid=uid))
        except BaseException as error:
            self._expectations.deleted(key, uid)
            if isinstance(error, ApiStatusError) and (error.is_not_found or error.is_conflict):
                return
            if isinstance(error, ClientError):
                self._record_event(
                    owner, WARNING, "FailedDelete", self.delete_note(owner, pod, error)
                )
            raise
        self._record_event(owner, NORMAL, "SuccessfulDelete", self.delete_note(owner, pod))

    async def delete_all(self, owner: RawObject, pods: Sequence[Pod]) -> ClientError | None:
        """Delete all of them; the first error is returned."""
        failure = None
        for result in await few_at_once(lambda pod: self.delete(owner, pod), pods):
            if isinstance(result, ClientError):
                failure = failure or result
            elif isinstance(result, Exception):
                raise result
        return failure

    # --- events ---

    def create_note(self, owner: RawObject, pod: Pod, error: ClientError | None = None) -> str:
        return f"Error creating: {error}" if error else f"Created pod: {name_of(pod)}"

    def delete_note(self, owner: RawObject, pod: Pod, error: ClientError | None = None) -> str:
        return f"Error deleting: {error}" if error else f"Deleted pod: {name_of(pod)}"

    def _record_event(self, owner: RawObject, type_: str, reason: str, note: str) -> None:
        self._recorder.event(reference_to(self._resource, owner), type_, reason, reason, note)


def _is_namespace_going(error: ClientError) -> bool:
    return isinstance(error, ApiStatusError) and error.is_namespace_terminating
