"""Status writes of requests.

An answer that is too large for the server or its storage is retried with fewer pools. An answer that is rejected for
another reason becomes a failure.
"""

from __future__ import annotations

import logging
from typing import Final

from allot.api.base import replace, whole_seconds
from allot.api.meta import Condition
from allot.api.pool_status import ResourcePoolStatusRequestStatus
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.projection import METADATA
from allot.controllers.pool_status.requests import KEP_REQUESTS, REQUESTS, PartialRequest, answered
from allot.controllers.pool_status.shared_answers import SharedAnswer

log = logging.getLogger(__name__)

_TOO_LARGE: Final = 413
_TOO_LARGE_FOR_ETCD: Final = ("request is too large", "larger than max")


class TooLargeError(Exception):
    """The answer is too large."""


def is_too_large(error: ApiStatusError) -> bool:
    """Whether the object is too large. API servers report etcd's limit as an internal error."""
    if error.code == _TOO_LARGE:
        return True
    return error.is_server_error and any(text in error.message for text in _TOO_LARGE_FOR_ETCD)


async def write_answer(
    client: Client,
    request: PartialRequest,
    answer: SharedAnswer,
    condition: Condition,
    *,
    knows_kep: bool,
) -> None:
    """Raises `ApiStatusError` or `TooLargeError`. The KEP's fields are sent only to a server that knows them."""
    try:
        if answer.generation_zero and knows_kep:
            # v1alpha3 cannot express the generation 0, which slices may have.
            status = ResourcePoolStatusRequestStatus(
                answer.pool_count,
                answer.generation_zero,
                (condition,),
                whole_seconds(answer.counted_at),
                answer.errors,
            )
            if await _write_as_kep(client, request, status):
                return
        # Request only the metadata as response: the object may be large.
        errors = answer.errors if knows_kep else ()
        await client.request(
            "PUT",
            REQUESTS.path(request.key, "status"),
            {"fieldValidation": "Ignore"},
            body=answered(request, answer.pool_count, answer.json, condition, errors),
            headers=METADATA.headers,
        )
    except ApiStatusError as error:
        if is_too_large(error):
            raise TooLargeError(str(error)) from error
        raise


async def _write_as_kep(
    client: Client, request: PartialRequest, status: ResourcePoolStatusRequestStatus
) -> bool:
    """Whether the server serves the KEP's version."""
    try:
        await client.update_status(KEP_REQUESTS, replace(request.whole(), status=status))
    except ApiStatusError as error:
        if error.is_not_found:
            return False
        raise
    return True


async def write_failure(
    client: Client, request: PartialRequest, status: ResourcePoolStatusRequestStatus
) -> None:
    """Raises `ApiStatusError`, unless the request is gone or was answered by another controller."""
    try:
        # The observation time is in the condition, which every server has.
        status = replace(status, observation_time=None)
        await client.update_status(REQUESTS, replace(request.whole(), status=status))
    except ApiStatusError as error:
        if not (error.is_conflict or error.is_not_found):
            raise
