"""Objects that exist in every cluster: the system's priority classes, flow control, the service CIDR, API services.

They are in `system_objects.jsonl`, one per line. Objects that were changed are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from allot.api.base import replace
from allot.api.identities import GroupVersionKind
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.kinds.resources import RESOURCES, Resource, find_kind
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.watch_cache.caches import Caches
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.interface import MISSING, Put, RevisionConflictError, Store

MAX_TRIES: Final = 10
MAX_OPERATIONS: Final = 100


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    text = (files(__package__) / "system_objects.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def _served_documents() -> Iterator[tuple[Resource, dict[str, Any]]]:
    served = {
        f"{version}.{resource.group}" for resource in RESOURCES for version in resource.versions
    }
    for document in _documents():
        resource = find_kind(GroupVersionKind.parse(f"{document['apiVersion']}/{document['kind']}"))
        if resource is None:
            continue
        if resource.kind == "APIService" and document["metadata"]["name"] not in served:
            continue
        yield resource, document


async def ensure_system_objects(
    store: Store, caches: Caches, clock: Callable[[], datetime]
) -> None:
    """Create those that are missing."""
    wanted = list(_served_documents())
    for _ in range(MAX_TRIES):
        for resource in dict.fromkeys(resource for resource, _ in wanted):
            await caches.of(resource).refresh()
        puts = [
            _put(caches, resource, document, clock())
            for resource, document in wanted
            if caches.of(resource).get(_key(caches, resource, document)) is None
        ]
        try:
            for start in range(0, len(puts), MAX_OPERATIONS):
                await store.write(*puts[start : start + MAX_OPERATIONS])
        except RevisionConflictError:
            continue  # another API server does the same
        return


def _key(caches: Caches, resource: Resource, document: dict[str, Any]) -> str:
    return caches.key(resource, "", document["metadata"]["name"])


def _put(caches: Caches, resource: Resource, document: dict[str, Any], now: datetime) -> Put:
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
    return Put(_key(caches, resource, document), body, MISSING)
