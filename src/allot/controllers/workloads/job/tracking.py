"""Counting finished pods once, whoever is killed in between.

    1. ask the server which of them still have the finalizer: the others were counted by somebody else
    2. write their uids into the status, on the version of the job that was decided on
    3. take their finalizers away
    4. move the uids to the numbers, on the version that 2. gave

A conflict at 2. or 4. means that somebody else was first: start over with what there is then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import PatchType
from allot.client.resources import PODS
from allot.controllers.workloads.job.tally import TRACKING, is_tracked
from allot.controllers.workloads.reading import Json, key_of, uid_of

MOST_UNCOUNTED: Final = 500
"""Uids in a status at once."""


async def still_tracked(client: Client, pods: Iterable[Pod]) -> list[Pod]:
    """Those that have the finalizer, as the server sees it now."""

    async def current(pod: Pod) -> Pod | None:
        found = await client.find(PODS, key_of(pod))
        return found if found is not None and uid_of(found) == uid_of(pod) else None

    found = await asyncio.gather(*map(current, pods))
    return [pod for pod in found if pod is not None and is_tracked(pod)]


async def untrack(client: Client, pods: Iterable[Pod]) -> frozenset[str]:
    """Take the finalizer away; the uids of those that do not have it any more."""

    async def freed(pod: Pod) -> str:
        await remove_finalizer(client, key_of(pod), uid_of(pod))
        return uid_of(pod)

    return frozenset(await asyncio.gather(*map(freed, pods)))


async def give_up(client: Client, pods: Iterable[Pod]) -> None:
    """Take the finalizer from pods that nobody waits for any more. A conflict if one may have ended meanwhile."""
    for pod in pods:
        patch = _without_finalizer(uid_of(pod))
        patch["metadata"]["resourceVersion"] = pod.get("metadata", "resourceVersion")
        try:
            await client.patch(PODS, key_of(pod), patch, PatchType.STRATEGIC)
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
