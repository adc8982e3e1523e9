"""The past that the API server keeps: the objects of its beginning, and the changes since with their times."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from allot.client import resources
from allot.client.client import Client
from allot.client.codecs import ListPage, WatchEvent
from allot.client.errors import ApiStatusError
from allot.client.resources import Resource
from allot.dashboard import server_history
from allot.dashboard.server_history import KINDS, MAX_QUESTIONS, read_past
from allot.testing.builders import a_claim, a_node

NOW = 10_000.0
CLAIM = a_claim()


class PastServer:
    """An API server with history: versions by the time from which on they were the last."""

    def __init__(
        self,
        versions: Mapping[float, int],
        events: Sequence[tuple[Resource[Any], WatchEvent[Any]]] = (),
        continue_: str = "",
    ) -> None:
        self._versions = versions
        self._events = events
        self._continue = continue_
        self.questions = 0

    async def request(
        self, _method: str, _path: str, query: Mapping[str, str], **_options: object
    ) -> Any:
        self.questions += 1
        time = datetime.fromisoformat(query["at"]).timestamp()
        kept = [version for since, version in self._versions.items() if since <= time]
        if not kept:
            raise ApiStatusError(410, message="forgotten")
        return SimpleNamespace(body=json.dumps({"resourceVersion": str(kept[-1])}).encode())

    async def list_page(self, resource: Resource[Any], **options: Any) -> ListPage[Any]:
        assert options["match"] == "Exact"
        items = [a_node()] if resource is resources.NODES else []
        return ListPage(items, options["resource_version"], self._continue)

    @asynccontextmanager
    async def watch(
        self, resource: Resource[Any], **_options: Any
    ) -> AsyncIterator[AsyncIterator[list[WatchEvent[Any]]]]:
        async def batches() -> AsyncIterator[list[WatchEvent[Any]]]:
            yield [event for of, event in self._events if of is resource]

        yield batches()


def claimed(type_: str, version: int) -> tuple[Resource[Any], WatchEvent[Any]]:
    return resources.RESOURCE_CLAIMS, WatchEvent(type_, CLAIM, str(version))


def past_of(server: PastServer) -> server_history.Past | None:
    return asyncio.run(read_past(cast("Client", server), NOW))


def test_changes_have_the_time_of_their_version() -> None:
    versions = {0.0: 5, NOW - 200: 7, NOW - 100: 9}
    server = PastServer(versions, [claimed("ADDED", 7), claimed("DELETED", 9)])

    past = past_of(server)

    assert past is not None
    assert past.begins == NOW - 300
    assert past.objects == [(resources.NODES, a_node())]
    created, deleted = past.changes
    assert created[1:] == (resources.RESOURCE_CLAIMS, CLAIM.key, CLAIM)
    assert deleted[1:] == (resources.RESOURCE_CLAIMS, CLAIM.key, None)
    assert NOW - 200 <= created.at < NOW - 198
    assert NOW - 100 <= deleted.at < NOW - 98
    assert server.questions < 30


def test_what_is_newer_than_the_last_version_comes_from_the_informers() -> None:
    past = past_of(PastServer({0.0: 5}, [claimed("ADDED", 6)]))

    assert past is not None
    assert not past.changes


def test_history_that_begins_later() -> None:
    past = past_of(PastServer({NOW - 100: 5}))

    assert past is not None
    assert NOW - 100 <= past.begins < NOW - 99


BUSY = {float(time): time for time in range(int(NOW) - 400, int(NOW))}
"""Something changes every second."""


def test_questions_are_bounded() -> None:
    events = [claimed("MODIFIED", time) for time in range(int(NOW) - 300, int(NOW))]
    server = PastServer(BUSY, events)

    assert past_of(server) is not None
    assert server.questions <= MAX_QUESTIONS + 20


def test_other_objects_that_change_all_the_time_do_not_blur_times() -> None:
    at = int(NOW) - 123
    server = PastServer(BUSY, [claimed("ADDED", at)])

    past = past_of(server)

    assert past is not None
    assert at <= past.changes[0].at < at + 2
    assert server.questions < 30


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(PastServer({}), id="nothing-is-kept"),
        pytest.param(PastServer({0.0: 5}, continue_="more"), id="too-many-objects"),
    ],
)
def test_no_past(server: PastServer) -> None:
    assert past_of(server) is None


def test_every_kind_of_the_floor_plan_is_read() -> None:
    assert {resources.RESOURCE_SLICES, resources.RESOURCE_CLAIMS, resources.PODS} <= {*KINDS}
