"""Watches pods and claims, and tells afterwards what must not have happened to them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from allot.testing.servers import EventStream, LocalServer
from tests.integration.resource_claims_cluster import (
    CLAIMS,
    FINALIZER,
    POD_CLAIM_NAME,
    PODS,
    Json,
    is_allocated,
    reserved_for,
)

MARK = "the-end"


class History:
    """All that happened to pods and claims, in the order in which it happened."""

    def __init__(self) -> None:
        self.events: list[Json] = []

    def _replay(self) -> Iterator[tuple[Json | None, Json | None, Mapping[str, Json]]]:
        """Each change of a claim, as (before, after), with the pods that there were then, by uid."""
        pods: dict[str, Json] = {}
        claims: dict[str, Json] = {}
        for event in sorted(self.events, key=_revision):
            obj = event["object"]
            is_gone, uid = event["type"] == "DELETED", obj["metadata"]["uid"]
            if obj["kind"] == "Pod":
                pods.pop(uid, None) if is_gone else pods.update({uid: obj})
                continue
            before = claims.pop(uid, None)
            if not is_gone:
                claims[uid] = obj
            yield before, None if is_gone else obj, pods

    def wrongs(self) -> list[str]:
        """Claims that were taken from pods which needed them, and entries that had two."""
        found = []
        claim_by_entry: dict[tuple[str, str], str] = {}
        for before, after, pods in self._replay():
            shown: Json = after or before or {}
            metadata = shown["metadata"]
            entry = _entry(shown)
            if after is None and entry is not None:
                claim_by_entry.pop(entry, None)
            elif (
                entry is not None
                and claim_by_entry.setdefault(entry, metadata["uid"]) != metadata["uid"]
            ):
                found.append(f"{metadata['name']} is a second claim for {entry}")
            if before is None:
                continue
            needed = [uid for uid in reserved_for(before) if uid in pods and not is_done(pods[uid])]
            if not needed:
                continue
            what = f"{metadata['name']}, which {[pods[uid]['metadata']['name'] for uid in needed]} needed"
            if after is None:
                found.append(f"deleted: {what}")
            elif not set(needed) <= set(reserved_for(after)):
                found.append(f"not reserved any more: {what}")
            elif is_allocated(before) and not is_allocated(after):
                found.append(f"deallocated: {what}")
            elif FINALIZER in _finalizers(before) and FINALIZER not in _finalizers(after):
                found.append(f"not protected any more: {what}")
        return found

    def count(self, type_: str, kind: str) -> int:
        return sum(e["type"] == type_ and e["object"]["kind"] == kind for e in self.events)


def is_done(pod: Json) -> bool:
    finished = pod["status"].get("phase") in ("Succeeded", "Failed")
    never = "deletionTimestamp" in pod["metadata"] and "nodeName" not in pod["spec"]
    return finished or never


def _finalizers(claim: Json) -> list[str]:
    return list(claim["metadata"].get("finalizers", ()))


def _revision(event: Json) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def _entry(claim: Json) -> tuple[str, str] | None:
    metadata = claim["metadata"]
    entry = metadata.get("annotations", {}).get(POD_CLAIM_NAME)
    if entry is None:
        return None
    return metadata["ownerReferences"][0]["uid"], entry


@contextlib.asynccontextmanager
async def history_of(server: LocalServer) -> AsyncIterator[History]:
    """To be read after the block."""
    history = History()
    async with server.watch(PODS) as pods, server.watch(CLAIMS) as claims:
        reading = [asyncio.create_task(_read(stream, history)) for stream in (pods, claims)]
        yield history
        mark: dict[str, Any] = {"metadata": {"name": MARK}}
        container = {"name": "c", "image": "i"}
        await server.post(PODS, mark | {"spec": {"containers": [container]}})
        await server.post(CLAIMS, mark | {"spec": {"devices": {}}})
        await asyncio.gather(*reading)


async def _read(stream: EventStream, history: History) -> None:
    while (event := await stream.next()) is not None:
        if event["object"]["metadata"]["name"] == MARK:
            return
        history.events.append(event)
