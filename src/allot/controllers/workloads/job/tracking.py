"""Counting finished pods once, whoever is killed in between.

    1. ask the server which of them still have the finalizer: the others were counted by somebody else,
       or by ourselves a moment ago, and must not even be added up
    2. write their uids into the status, on the version of the job that was decided on
    3. take their finalizers away
    4. move the uids to the numbers, on the version that 2. gave

A conflict at 2. or 4. means that somebody else was first: start over with what there is then.
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
"""Uids in a status at once."""


async def verified(client: Client, pods: Sequence[Pod], finished: Iterable[Pod]) -> list[Pod]:
    """The pods, with those that have finished as the server sees them now, and without those it has no more."""
    current = dict(_all(await few_at_once(partial(_look_up, client), finished)))
    found = (current.get(uid_of(pod), pod) for pod in pods)
    return [pod for pod in found if pod is not None]


async def _look_up(client: Client, pod: Pod) -> tuple[str, Pod | None]:
    found = await client.find(PODS, pod.key)
    return uid_of(pod), found if found is not None and uid_of(found) == uid_of(pod) else None


async def find_unseen(client: Client, job: RawObject, uids: Container[str]) -> list[Pod]:
    """Those of these pods that exist, though our copy does not show them: it may be behind."""
    labels: Json = selector_of(job).get("matchLabels") or {}
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    scope = Scope(namespace=job.key.namespace, label_selector=selector)
    return [pod for pod in (await client.list(PODS, scope)).items if uid_of(pod) in uids]


async def untrack(client: Client, pods: Iterable[Pod]) -> frozenset[str]:
    """Take the finalizer away; the uids of those that do not have it any more."""

    async def freed(pod: Pod) -> str:
        await remove_finalizer(client, pod.key, uid_of(pod))
        return uid_of(pod)

    return frozenset(_all(await few_at_once(freed, pods)))


def _all(results: Iterable[R | Exception]) -> Iterator[R]:
    """What was returned; raises what was raised first."""
    for result in results:
        if isinstance(result, Exception):
            raise result
        yield result


async def give_up(client: Client, pods: Iterable[Pod]) -> None:
    """Take the finalizer from pods that nobody waits for any more. A conflict if one may have ended meanwhile."""
    for pod in pods:
        patch = _without_finalizer(uid_of(pod))
        patch["metadata"]["resourceVersion"] = pod.get("metadata", "resourceVersion")
        try:
            await client.patch(PODS, pod.key, patch, PatchType.STRATEGIC)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise


async def remove_finalizer(client: Client, key: ObjectKey, uid: str) -> None:
    """Nothing happens to a pod that is gone, or to its successor."""
    try:
        await client.patch(PODS, key, _without_finalizer(uid), PatchType.STRATEGIC)
    except ApiStatusError as error:
        if error.is_not_found:
            return
        if not error.is_conflict:
            raise
        found = await client.find(PODS, key)
        if found is not None and uid_of(found) == uid and is_tracked(found):
            raise  # a conflict about something else


def _without_finalizer(uid: str) -> Json:
    return {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
