"""Fairness between users: one floods the API server with lists and writes, the others need not wait for that.

What counts is the order of answers: how many of the flood are answered while the other user waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from allot.apiserver.auth.authentication import MASTERS, User
from allot.apiserver.http.fair_limiter import QueueLimits
from allot.apiserver.http.flow_control import FlowLimits, seats_for
from allot.storage.interface import Operation
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer, ServerResponse
from allot.testing.virtual_time import run_in_virtual_time

MAPS: Final = "/api/v1/namespaces/default/configmaps"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SEATS: Final = 8
LIMITS: Final = FlowLimits(
    max_requests_inflight=SEATS,
    max_mutating_requests_inflight=SEATS,
    max_body_bytes=64 * 1024,
    queue=QueueLimits(max_waiting=400, max_waiting_per_user=100, wait_seconds=600),
)
USERS: Final = {
    "flood-token": User("flood", groups=(MASTERS,)),
    "other-token": User("other", groups=(MASTERS,)),
    "node-token": User("system:node:n1", groups=("system:nodes", MASTERS)),
}
OBJECTS: Final = 350
FLOOD: Final = 60
"""Requests of each kind that the flood has open at any time: more than may wait."""
RETRY_SECONDS: Final = 10
TURNS: Final = 3
SPEC: Final = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


class SlowStore(MemoryStore):
    """Takes a second for each operation, so that requests are in flight together."""

    is_slow = False
    known_revision = -1

    async def revision(self) -> int:
        await self._pause()
        return await super().revision()

    async def write(self, *operations: Operation) -> int:
        await self._pause()
        return await super().write(*operations)

    async def _pause(self) -> None:
        if self.is_slow:
            await asyncio.sleep(1)


class Traffic:
    """Requests of users, with the number of answers to the flood so far."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._flood: list[asyncio.Task[None]] = []
        self._made = 0
        self.flood_answers: Counter[int] = Counter()

    async def ask(
        self, user: str, method: str, path: str, body: Any = None, **query: str
    ) -> ServerResponse:
        headers = {"authorization": f"Bearer {user}-token"}
        return await self._server.ask(method, path, body, headers=headers, query=query)

    @property
    def served(self) -> int:
        """Requests of the flood that got an answer other than 429."""
        return self.flood_answers.total() - self.flood_answers[429]

    def begin_flood(self) -> None:
        kinds: tuple[Callable[[str], Awaitable[ServerResponse]], ...] = (
            self.list_maps,
            self.list_claims,
            self.create_map,
            self.create_claim,
        )
        self._flood = [
            asyncio.create_task(self._keep_asking(kind)) for kind in kinds for _ in range(FLOOD)
        ]

    async def end_flood(self) -> None:
        for task in self._flood:
            task.cancel()
        await asyncio.gather(*self._flood, return_exceptions=True)

    async def _keep_asking(self, kind: Callable[[str], Awaitable[ServerResponse]]) -> None:
        while True:
            answer = await kind("flood")
            self.flood_answers[answer.code] += 1
            if answer.code == 429:
                await asyncio.sleep(RETRY_SECONDS)

    async def list_maps(self, user: str) -> ServerResponse:
        return await self.ask(user, "GET", MAPS)

    async def list_claims(self, user: str) -> ServerResponse:
        return await self.ask(user, "GET", CLAIMS)

    async def get_map(self, user: str) -> ServerResponse:
        return await self.ask(user, "GET", f"{MAPS}/map-0")

    async def create_map(self, user: str) -> ServerResponse:
        metadata = {"name": self._name(user), "labels": {"of": user}}
        return await self.ask(
            user, "POST", MAPS, {"metadata": metadata, "data": {"text": "x" * 4096}}
        )

    async def create_claim(self, user: str) -> ServerResponse:
        return await self.ask(
            user, "POST", CLAIMS, {"metadata": {"name": self._name(user)}, "spec": SPEC}
        )

    def _name(self, user: str) -> str:
        self._made += 1
        return f"{user}-{self._made}"


@pytest.mark.parametrize("user", ["other", "node"])
def test_a_flood_does_not_delay_other_users(user: str) -> None:
    async def story() -> None:
        store = SlowStore()
        async with LocalServer(store, users=USERS, flow_limits=LIMITS) as server:
            for number in range(OBJECTS):
                await server.post(MAPS, {"metadata": {"name": f"map-{number}"}})
            assert seats_for(OBJECTS) > SEATS // 4, "a list does not fit beside the flood's share"
            traffic = Traffic(server)
            store.is_slow = True
            traffic.begin_flood()
            await asyncio.sleep(5)
            assert traffic.served, "the flood is served as well"
            assert traffic.flood_answers[429], "and is more than may wait"
            for _ in range(TURNS):
                for request in (
                    traffic.get_map,
                    traffic.list_maps,
                    traffic.list_claims,
                    traffic.create_map,
                    traffic.create_claim,
                ):
                    before = traffic.served
                    answer = await request(user)
                    assert answer.code in (200, 201), answer.content
                    # Reads and writes that were in flight may end first, and as many while this one is served;
                    # not those that were waiting before it.
                    assert traffic.served - before <= 4 * SEATS, request.__name__
            await traffic.end_flood()

    run_in_virtual_time(story())


def test_what_the_flood_left_is_free_again() -> None:
    async def story() -> None:
        store = SlowStore()
        async with LocalServer(store, users=USERS, flow_limits=LIMITS) as server:
            traffic = Traffic(server)
            store.is_slow = True
            traffic.begin_flood()
            await asyncio.sleep(5)
            await traffic.end_flood()
            answers = await asyncio.gather(*(traffic.create_map("flood") for _ in range(SEATS)))
            assert {answer.code for answer in answers} == {201}
            page = (await server.ask("GET", "/metrics")).content.decode()
            assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0.0' in page

    run_in_virtual_time(story())
