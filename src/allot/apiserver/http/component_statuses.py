"""get and list of ComponentStatuses: every request checks the components anew."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.http.component_health import HealthChecks
from allot.apiserver.http.list_options import selection_for
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.component_status import HEALTHY
from allot.apiserver.registry.reading import Listing, ListMeta
from allot.apiserver.watch_cache.caches import key_prefix
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import MISSING, Entry


class ComponentStatuses:
    """The objects of a kind that is not stored."""

    def __init__(self, checks: HealthChecks) -> None:
        self._checks = checks

    async def list(self, request: ApiRequest, target: Target) -> Listing:
        selection = selection_for(request, target)
        names = self._checks.names
        found = await asyncio.gather(*(self._status(target, name) for name in names))
        return Listing([each for each in found if selection.matches(each)], ListMeta(MISSING))

    async def get(self, target: Target) -> StoredObject:
        if target.name not in self._checks.names:
            kind = target.resource.singular  # not the plural, as for objects
            message = f'{kind} "{target.name}" not found'
            raise ApiError(404, "NotFound", message, Details(target.name, "", kind))
        return await self._status(target, target.name)

    async def _status(self, target: Target, name: str) -> StoredObject:
        health = await self._checks.check(name)
        condition: dict[str, Any] = {
            "type": HEALTHY,
            "status": "True" if health.is_healthy else "False",
            "message": health.message,
        }
        if health.error:
            condition["error"] = health.error
        body = msgspec.json.encode({"metadata": {"name": name}, "conditions": [condition]})
        key = key_prefix(target.resource) + name
        return StoredObject(Entry(key, body, MISSING, MISSING), codec_for(target.resource))
