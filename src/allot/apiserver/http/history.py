"""/history: the resourceVersion of a time, to list the past by.

    GET /history?at=2026-05-01T14:05:00Z   {"at": "2026-05-01T14:05:00Z", "resourceVersion": "1234"}
    GET /api/v1/pods?resourceVersion=1234&resourceVersionMatch=Exact

410 says that the time is before what is kept, and what the earliest is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from allot.api.times import written_time
from allot.apiserver import api_errors
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import Response, json_response
from allot.apiserver.watch_cache.storage_errors import api_errors_for_storage
from allot.storage.interface import UnknownTimeError

PATH: Final = "history"
RevisionAt = Callable[[float], Awaitable[int]]


async def answer_history(request: ApiRequest, revision_at: RevisionAt) -> Response:
    """The last revision at the time that is asked for."""
    text = request.query.get("at", "")
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError
        seconds = time.timestamp()
    except (ValueError, OverflowError):
        raise api_errors.bad_request(
            f"at: {text[:64]!r} is not a time in RFC 3339, such as 2026-05-01T14:05:00Z"
        ) from None
    with api_errors_for_storage():
        try:
            revision = await revision_at(seconds)
        except UnknownTimeError as error:
            raise api_errors.expired(
                f"the history that is kept begins at {_shown(error.since)}, after {_shown(error.time)}"
            ) from None
    return json_response(200, {"at": text, "resourceVersion": str(revision)})


def _shown(seconds: float) -> str:
    """The next whole second, so that what is said to be kept is."""
    try:
        time = datetime.fromtimestamp(-(-seconds // 1), UTC)
    except (ValueError, OverflowError):
        return "that time"
    return written_time(time)
