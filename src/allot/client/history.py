"""The past of a cluster: the resourceVersion of a time, from the endpoint /history of allot's API server."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from allot.client.client import Client
from allot.client.errors import ApiStatusError, ClientError, UnreadableAnswerError


class NoHistoryError(ClientError):
    """The API server does not say which resourceVersion it had at a time."""


class _Found(msgspec.Struct, rename="camel"):
    resource_version: str


async def resource_version_at(client: Client, time: datetime) -> str:
    """The last resourceVersion at a time, to list exactly that; `ClientError` if it is not kept."""
    at = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    try:
        response = await client.request("GET", "/history", {"at": at}, may_repeat=True)
        return msgspec.json.decode(response.body, type=_Found).resource_version
    except ApiStatusError as error:
        if error.is_not_found:
            raise NoHistoryError(
                "this API server does not tell the past; `allot record` writes recordings of it,"
                " and -f RECORDING --at reads them"
            ) from None
        raise
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"/history: {error}") from None
