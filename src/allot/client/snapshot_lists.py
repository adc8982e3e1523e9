"""Snapshots of an API server, of one list of each resource."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from allot.client.client import Client
from allot.client.discovery import readable_versions
from allot.client.errors import ApiStatusError
from allot.client.options import EVERYTHING, Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot

T = TypeVar("T")


async def take_snapshot(
    client: Client,
    resources: Iterable[Resource[Any]],
    namespace: str = "",
    scopes: Mapping[Resource[Any], Scope] | None = None,
    resource_version: str = "",
) -> Snapshot:
    """What an API server has, in whichever version it has it. Only lists are asked for.

    With a `resource_version`, what it had then.

    Of resources with a scope only that is taken. Of a resource that may not be listed everywhere, what `namespace`
    has is taken. `ClientError` if the server does not answer at all.
    """
    snapshot = Snapshot()
    reads = (
        _read(
            client,
            resource,
            (scopes or {}).get(resource, EVERYTHING),
            namespace,
            snapshot,
            resource_version,
        )
        for resource in resources
    )
    for failure in await asyncio.gather(*reads, return_exceptions=True):
        if failure is not None:
            raise failure
    return snapshot


class _Version(msgspec.Struct):
    git_version: str = msgspec.field(default="", name="gitVersion")


async def server_version(client: Client) -> str:
    """What the API server says it is; empty if it does not say it to us."""
    try:
        response = await client.request("GET", "/version", may_repeat=True)
        return msgspec.json.decode(response.body, type=_Version).git_version
    except (ApiStatusError, msgspec.DecodeError):
        return ""


async def _read(
    client: Client,
    resource: Resource[Any],
    scope: Scope,
    namespace: str,
    snapshot: Snapshot,
    then: str,
) -> None:
    try:
        found = await _list(client, resource, scope, then)
    except ApiStatusError as error:
        if not error.is_forbidden:
            raise
        snapshot.unread[resource] = str(error)
        if not resource.namespaced or not namespace or scope.namespace:
            return
        try:
            found = await _list(client, resource, Scope(namespace), then)
        except ApiStatusError as again:
            if not again.is_forbidden:
                raise
            return
        snapshot.unread[resource] = f"only those in namespace {namespace}: {error}"
    if found is None:
        snapshot.unread[resource] = "the server does not have them"
        return
    for obj in found:
        snapshot.put(resource, obj)


async def _list(
    client: Client, resource: Resource[T], scope: Scope, then: str
) -> Sequence[T] | None:
    """None if the server does not serve the resource in a version that we can read."""
    match = "Exact" if then else ""
    for version in readable_versions(resource):
        asked = resource if version == resource.version else resource.in_version(version)
        try:
            return (await client.list(asked, scope, resource_version=then, match=match)).items
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
    return None
