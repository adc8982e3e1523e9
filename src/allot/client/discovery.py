"""Which of the versions that we can read a server has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from allot.api.resource import GROUP as DRA
from allot.api.scheme import KINDS
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource

T = TypeVar("T")


async def served(client: Client, resource: Resource[T]) -> Resource[T] | None:
    """The resource in the best version that the server has; None if it has none we can read."""
    for version in _readable_versions(resource):
        if await _is_served(client, resource, version):
            return resource if version == resource.version else resource.in_version(version)
    return None


def _readable_versions(resource: Resource[T]) -> Iterable[str]:
    known = KINDS[resource.kind].versions if resource.group == DRA else ()
    return dict.fromkeys((resource.version, *known))


async def _is_served(client: Client, resource: Resource[T], version: str) -> bool:
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    try:
        response = await client.request("GET", root, may_repeat=True)
    except ApiStatusError as error:
        if error.is_not_found:
            return False
        raise
    found = msgspec.json.decode(response.body, type=_ResourceList)
    return any(entry.name == resource.plural for entry in found.resources or ())


class _Entry(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Entry] | None = None
