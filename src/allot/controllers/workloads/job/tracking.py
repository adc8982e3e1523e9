"""Counting finished pods exactly once, even if a controller crashes in between.

    1. look up live which of them still have the finalizer: the others are counted already
    2. write their uids to the status, with the resourceVersion of the decision
    3. remove their finalizers
    4. move the uids to the counts, with the resourceVersion of 2.

After a conflict at 2. or 4. the sync starts over.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.cooperative import few_at_once
from allot.client.errors import ApiStatusError
from allot.client.options import PatchType, Scope
from allot.client.resources import PODS
from allot.controllers.workloads.accessors import Json, selector_of, uid_of
from allot.controllers.workloads.job.tally import TRACKING, is_tracked

R = TypeVar("R")

MAX_UNCOUNTED: Final = 500
"""Uids in a status at the same time."""


async def verified(client: Client, pods: Sequence[Pod], finished: Iterable[Pod]) -> list[Pod]:
    """The pods, with finished ones replaced by their live versions, and without deleted ones."""
    current = dict(_all(await few_at_once(partial(_look_up, client), finished)))
    found = (current.get(uid_of(pod), pod) for pod in pods)
    return [pod for pod in found if pod is not None]


async def _look_up(client: Client, pod: Pod) -> tuple[str, Pod | None]:
    found = await client.find_listed(PODS, pod.key)
    return uid_of(pod), found if found is not None and uid_of(found) == uid_of(pod) else None


async def find_unseen(client: Client, job: RawObject, uids: Container[str]) -> list[Pod]:
    """Those of these pods that exist on the server, but not in the informer."""
    labels: Json = selector_of(job).get("matchLabels") or {}
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    scope = Scope(namespace=job.key.namespace, label_selector=selector)
    return [pod for pod in (await client.list(PODS, scope)).items if uid_of(pod) in uids]


async def untrack(client: Client, pods: Iterable[Pod]) -> frozenset[str]:
    """Remove the finalizer; the uids of pods that no longer have it."""

    async def freed(pod: Pod) -> str:
        await remove_finalizer(client, pod.key, uid_of(pod))
        return uid_of(pod)

    return frozenset(_all(await few_at_once(freed, pods)))


def _all(results: Iterable[R | Exception]) -> Iterator[R]:
    """The results; raises the first exception."""
    for result in results:
        if isinstance(result, Exception):
            raise result
        yield result


async def give_up(client: Client, pods: Iterable[Pod]) -> None:
    """Remove the finalizer of pods that are not to be counted. Conflicts if a pod changed meanwhile."""
    for pod in pods:
        patch = _without_finalizer(uid_of(pod))
        patch["metadata"]["resourceVersion"] = pod.get("metadata", "resourceVersion")
        try:
            await client.patch(PODS, pod.key, patch, PatchType.STRATEGIC)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise


async def remove_finalizer(client: Client, key: ObjectKey, uid: str) -> None:
    """Does nothing if the pod is gone or was replaced."""
    try:
        await client.patch(PODS, key, _without_finalizer(uid), PatchType.STRATEGIC)
    except ApiStatusError as error:
        if error.is_not_found:
            return
        if not error.is_conflict:
            raise
        found = await client.find_listed(PODS, key)
        if found is not None and uid_of(found) == uid and is_tracked(found):
            raise  # another conflict


def _without_finalizer(uid: str) -> Json:
    return {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
