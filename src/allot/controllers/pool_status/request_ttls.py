"""`spec.ttlSecondsAfterComplete` of requests, a field that only the KEP's version (v1alpha1) has.

A server without that version is asked again after `RECHECK_SECONDS`, not for every request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.controllers.pool_status.requests import KEP_PARTIAL_REQUESTS, PartialRequest

log = logging.getLogger(__name__)

RECHECK_SECONDS: Final = 600.0
"""How long a server is assumed not to serve v1alpha1 after it said so."""


class RequestTtls:
    """Reads each request once in v1alpha1: the field is immutable."""

    def __init__(self, client: Client, exists: Callable[[ObjectKey], bool]) -> None:
        """`exists` tells whether a request still exists, as far as the informer knows."""
        self.is_served = False
        """Whether the server is known to serve v1alpha1, and with it the KEP's fields."""
        self._client = client
        self._exists = exists
        self._unserved_until = float("-inf")
        self._ttl_by_uid: dict[str, int | None] = {}

    async def get(self, request: PartialRequest) -> int | None:
        """The TTL of a request; None if it sets none."""
        uid = request.metadata.uid
        if uid in self._ttl_by_uid:
            return self._ttl_by_uid[uid]
        ttl_seconds = await self._read(request)
        if self._exists(request.key):
            self._ttl_by_uid[uid] = ttl_seconds
        return ttl_seconds

    def forget(self, uid: str) -> None:
        self._ttl_by_uid.pop(uid, None)

    async def _read(self, request: PartialRequest) -> int | None:
        clock = self._client.clock
        if clock.now() < self._unserved_until:
            return None
        try:
            found = await self._client.get(KEP_PARTIAL_REQUESTS, request.key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
            if (
                error.details.get("name") != request.key.name
            ):  # the version is missing, not the object
                log.info("%s is not served: %s", KEP_PARTIAL_REQUESTS, error)
                self.is_served = False
                self._unserved_until = clock.now() + RECHECK_SECONDS
            return None
        self.is_served = True
        if found.metadata.uid != request.metadata.uid:
            return None
        return found.spec.ttl_seconds_after_complete
