"""Objects that exist in every cluster: the system's priority classes, flow control, API services, the service CIDR
and the service `kubernetes`.

They are in `system_objects.jsonl`, one per line. Objects that were changed are left alone. Most that are deleted while the
server runs are created again. To the endpoints of the service the address of this server is added.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from allot.api.base import replace
from allot.api.identities import GroupVersionKind
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.kinds.resources import RESOURCES, Resource, find_kind
from allot.apiserver.registry.kubernetes_endpoints import with_address
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import (
    MISSING,
    Put,
    RevisionConflictError,
    StorageError,
    Store,
)
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

MAX_TRIES: Final = 10
MAX_OPERATIONS: Final = 100
ONCE: Final = ("PriorityClass", "APIService")
"""Kinds whose objects are created at the start only."""
ENDPOINT_KINDS: Final = ("Endpoints", "EndpointSlice")


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    text = (files(__package__) / "system_objects.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def _served_documents(
    further: Sequence[dict[str, Any]],
) -> Iterator[tuple[Resource, dict[str, Any]]]:
    served = {
        f"{version}.{resource.group}" for resource in RESOURCES for version in resource.versions
    }
    for document in (*_documents(), *further):
        resource = find_kind(GroupVersionKind.parse(f"{document['apiVersion']}/{document['kind']}"))
        if resource is None:
            continue
        if resource.kind == "APIService" and document["metadata"]["name"] not in served:
            continue
        yield resource, document


class SystemObjects:
    """Creates those that are missing, at the start and later.

    `further` are documents of other objects that are treated alike.
    """

    def __init__(
        self,
        store: Store,
        caches: Caches,
        clock: Callable[[], datetime],
        further: Callable[[], Sequence[dict[str, Any]]],
    ) -> None:
        self._store = store
        self._caches = caches
        self._clock = clock
        self._further = further
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        documents = list(_served_documents(self._further()))
        await self._ensure(documents)
        kept = [(resource, each) for resource, each in documents if resource.kind not in ONCE]
        for resource in dict.fromkeys(resource for resource, _ in kept):
            self._caches.of(resource).listen(self._changed.set)
        self._task = asyncio.create_task(self._run(kept))

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _run(self, documents: list[tuple[Resource, dict[str, Any]]]) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._ensure(documents)
            except StorageError as error:  # the next change is another chance
                log.info("objects of the system: %s", error)

    async def _ensure(self, wanted: list[tuple[Resource, dict[str, Any]]]) -> None:
        caches = self._caches
        for _ in range(MAX_TRIES):
            for resource in dict.fromkeys(resource for resource, _ in wanted):
                await caches.of(resource).refresh()
            puts = list(self._puts(wanted))
            try:
                for start in range(0, len(puts), MAX_OPERATIONS):
                    await self._store.write(*puts[start : start + MAX_OPERATIONS])
            except RevisionConflictError:
                continue  # another API server does the same
            return

    def _puts(self, wanted: list[tuple[Resource, dict[str, Any]]]) -> Iterator[Put]:
        for resource, document in wanted:
            key = _key(self._caches, resource, document)
            stored = self._caches.of(resource).get(key)
            if stored is None:
                yield _put(key, resource, document, self._clock())
            elif resource.kind in ENDPOINT_KINDS:
                merged = with_address(stored.object.data, document)
                if merged != stored.object.data:
                    codec = codec_for(resource)
                    body = codec.encode(RawObject(merged), codec.storage_version)
                    yield Put(key, body, stored.revision)


def _key(caches: Caches, resource: Resource, document: dict[str, Any]) -> str:
    metadata = document["metadata"]
    return caches.key(resource, metadata.get("namespace", ""), metadata["name"])


def _put(key: str, resource: Resource, document: dict[str, Any], now: datetime) -> Put:
    new = RawObject(document)
    conditions = [
        {**condition, "lastTransitionTime": written_time(now)}
        for condition in new.get("status", "conditions", default=())
    ]
    if conditions:
        new = new.with_value(conditions, "status", "conditions")
    stamped = replace(new.metadata, uid=new_uid(), creation_timestamp=now)
    codec = codec_for(resource)
    body = codec.encode(new.with_metadata(stamped), codec.storage_version)
    return Put(key, body, MISSING)
