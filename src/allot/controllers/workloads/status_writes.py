"""Status writes: only changed fields, retried on conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource
from allot.controllers.workloads.accessors import Json, uid_of


def with_status(obj: RawObject, status: Mapping[str, Any]) -> RawObject:
    """The object with these fields in its status; None removes a field, other fields stay.

    The object itself if nothing changes.
    """
    before: Json = obj.get("status", default={})
    after = {name: value for name, value in {**before, **status}.items() if value is not None}
    return obj if after == before else obj.with_value(after, "status")


async def write_status(
    client: Client, resource: Resource[RawObject], obj: RawObject, status: Mapping[str, Any]
) -> RawObject:
    """The written object. Nothing is written if it is gone or was replaced."""
    wanted = with_status(obj, status)
    if wanted is obj:
        return obj

    def change(current: RawObject) -> RawObject:
        return with_status(current, status) if uid_of(current) == uid_of(obj) else current

    try:
        return await client.update_with_retry(
            resource, obj.key, change, subresource="status", start=obj
        )
    except ApiStatusError as error:
        if error.is_not_found:
            return obj
        raise
