from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.leader_election import LeaderElector, LeadershipLostError
from allot.client.transport import JSON, Query, Response
from tests.unit.client.fakes import LOST, FakeClock, ScriptedTransport, answer, settle, status

KEY = ObjectKey("kube-system", "allot")


class LeaseServer(ScriptedTransport):
    """Holds one Lease. Some candidates may be cut off from it."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        await asyncio.sleep(0)
        if method == "GET":
            return answer(200, self.lease) if self.lease else answer(404)
        assert body is not None
        wanted = msgspec.json.decode(body)
        if method == "POST":
            if self.lease:
                return answer(409, status(409, "AlreadyExists"))
        elif not self.lease:
            return answer(404)
        elif wanted["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return answer(409, status(409, "Conflict"))
        self.version += 1
        wanted["metadata"]["resourceVersion"] = str(self.version)
        self.lease = wanted
        self.writes.append(wanted["spec"]["holderIdentity"])
        return answer(200, wanted)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease
        spec: dict[str, Any] = self.lease["spec"]
        return spec


class Line(LeaseServer):
    """One candidate's way to the server, which can be cut."""

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self.is_cut = False

    async def request(self, *args: Any, **kwargs: Any) -> Response:
        if self.is_cut:
            raise LOST
        return await self._server.request(*args, **kwargs)


class Candidate:
    def __init__(self, server: LeaseServer, clock: FakeClock, name: str) -> None:
        self.line = Line(server)
        self.leaders: list[str] = []
        self.elector = LeaderElector(
            Client(self.line, clock=clock),
            KEY,
            name,
            on_new_leader=self.leaders.append,
            chance=lambda: 0.0,
        )
        self.leads = False
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.leads = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False

    async def stop(self) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


Scenario = Callable[[LeaseServer, FakeClock, Candidate, Candidate], Awaitable[None]]


def play(scenario: Scenario) -> LeaseServer:
    server = LeaseServer()

    async def main() -> None:
        clock = FakeClock()
        one = Candidate(server, clock, "one")
        await settle()
        two = Candidate(server, clock, "two")
        await clock.advance(5)
        assert (one.leads, two.leads) == (True, False)
        assert (two.elector.holder, two.elector.is_leader) == ("one", False)
        assert one.elector.is_leader
        await scenario(server, clock, one, two)
        for candidate in (one, two):
            if not candidate.task.done():
                await candidate.stop()

    asyncio.run(main())
    return server


def test_one_leads_and_renews() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        await clock.advance(100)
        assert (one.leads, two.leads) == (True, False)
        assert server.spec["leaseTransitions"] == 0
        assert server.spec["leaseDurationSeconds"] == 15
        assert server.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert server.spec["renewTime"] > "2026-01-01T00:01:40"
        assert set(server.writes) == {"one"}
        assert two.leaders == ["one"]

    play(scenario)


def test_a_leader_that_stops_releases_its_lease() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        await one.stop()
        assert server.spec["holderIdentity"] == ""
        await clock.advance(2.1)
        assert two.leads
        assert server.spec["leaseTransitions"] == 1
        assert two.leaders == ["one", "two"]

    play(scenario)


def test_a_disconnected_leader_stops_before_another_leads() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        one.line.is_cut = True
        for _ in range(40):
            await clock.advance(0.5)
            assert not (one.leads and two.leads)
        assert two.leads
        with pytest.raises(LeadershipLostError):
            await one.task
        assert server.spec["holderIdentity"] == "two"

    play(scenario)


def test_a_short_break_changes_nothing() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        one.line.is_cut = True
        await clock.advance(6)
        one.line.is_cut = False
        await clock.advance(30)
        assert one.leads
        assert set(server.writes) == {"one"}

    play(scenario)


def test_a_lease_taken_by_another_holder_is_lost() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        assert server.lease
        metadata = server.lease["metadata"] | {"resourceVersion": "99"}
        server.lease = {"metadata": metadata, "spec": server.spec | {"holderIdentity": "three"}}
        await clock.advance(2.5)
        assert not one.leads
        with pytest.raises(LeadershipLostError):
            await one.task
        assert server.spec["holderIdentity"] == "three"

    play(scenario)


def test_a_touched_lease_is_still_ours() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        assert server.lease
        server.lease["metadata"] |= {"resourceVersion": "touched", "labels": {"a": "b"}}
        await clock.advance(5)
        assert one.leads
        assert server.lease["metadata"]["labels"] == {"a": "b"}

    play(scenario)


def test_clocks_of_others_do_not_matter() -> None:
    async def scenario(
        server: LeaseServer, clock: FakeClock, one: Candidate, two: Candidate
    ) -> None:
        """A holder whose calendar is years behind holds its Lease as long as it changes."""
        one.task.cancel()
        await settle()
        await two.stop()
        assert server.lease
        late: Candidate | None = None
        for number in range(30):
            server.lease["metadata"]["resourceVersion"] = f"x{number}"
            server.lease["spec"] = server.spec | {
                "holderIdentity": "old",
                "renewTime": f"1999-01-01T00:00:{number:02}.000000Z",
                "leaseDurationSeconds": 15,
            }
            late = late or Candidate(server, clock, "late")
            await clock.advance(1)
        assert late is not None
        assert [late.leads] == [False]
        await clock.advance(18)
        assert late.leads
        await late.stop()

    play(scenario)


def test_work_that_ends_ends_the_election() -> None:
    async def main() -> None:
        server, clock = LeaseServer(), FakeClock()
        elector = LeaderElector(Client(server, clock=clock), KEY, "one")

        async def lead() -> None:
            return

        await elector.run(lead)
        assert server.spec["holderIdentity"] == ""

    asyncio.run(main())
