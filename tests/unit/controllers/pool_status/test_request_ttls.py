"""The TTL of requests, which only v1alpha1 has; a server without that version is not asked for every request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from allot.api.meta import ObjectMeta
from allot.client.transport import Response
from allot.controllers.pool_status.request_ttls import RECHECK_SECONDS, RequestTtls
from allot.controllers.pool_status.requests import PartialRequest
from tests.unit.client.fakes import answer, scripted, status

NOT_SERVED = Response(404, (), b"404 page not found\n")


def a_partial_request(name: str) -> PartialRequest:
    return PartialRequest(ObjectMeta(name=name, uid=f"uid-{name}"))


def found(name: str, ttl_seconds: int) -> Response:
    metadata = {"name": name, "uid": f"uid-{name}"}
    return answer(200, {"metadata": metadata, "spec": {"ttlSecondsAfterComplete": ttl_seconds}})


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_version_that_is_not_served_is_remembered() -> None:
    async def story() -> None:
        client, transport, clock = scripted(NOT_SERVED, found("q", 60))
        ttls = RequestTtls(client, lambda _: True)
        for number in range(5):
            assert await ttls.get(a_partial_request(f"q{number}")) is None
        assert len(transport.requests) == 1
        assert not ttls.is_served

        await clock.advance(RECHECK_SECONDS)
        assert await ttls.get(a_partial_request("q")) == 60
        assert ttls.is_served

    run(story())


def test_a_request_that_is_gone_says_nothing_about_the_version() -> None:
    async def story() -> None:
        missing = status(404, "NotFound") | {"details": {"name": "gone"}}
        client, transport, _ = scripted(answer(404, missing), found("q", 60))
        ttls = RequestTtls(client, lambda key: key.name != "gone")
        assert await ttls.get(a_partial_request("gone")) is None
        assert await ttls.get(a_partial_request("q")) == 60
        assert await ttls.get(a_partial_request("q")) == 60, "read once"
        assert len(transport.requests) == 2

    run(story())
