"""The ledger of allocated devices, which is empty until a request asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation.allocated_devices import Ledger
from allot.api.claims import ResourceClaim
from allot.client.client import Client
from allot.client.informer import InformerFactory
from allot.client.resources import RESOURCE_CLAIMS
from allot.controllers.pool_status.inventory import PoolInventory
from allot.features import DEFAULTS
from allot.testing.builders import DRIVER, a_claim, an_allocation
from tests.unit.client.fakes import FakeClock, ScriptedTransport

MANY = 250
"""Claims that are entered with pauses in between."""


class Claims:
    """Claims as events bring them, and the inventory."""

    def __init__(self) -> None:
        informers = InformerFactory(Client(ScriptedTransport(), clock=FakeClock()))
        self.inventory = PoolInventory(DEFAULTS)
        self.inventory.add_handlers(informers, lambda _: None)
        self.informer = informers.informer(RESOURCE_CLAIMS)
        self._versions = iter(range(1, 1_000_000))

    def put(self, name: str, device: str | None, uid: str = "u") -> None:
        allocation = an_allocation(device) if device else None
        version = str(next(self._versions))
        self.informer.put(
            a_claim(name=name, allocation=allocation, uid=uid, resource_version=version)
        )

    def drop(self, name: str) -> None:
        self.informer.drop(a_claim(name=name).key)

    def assert_ledger_is_right(self) -> None:
        wanted = Ledger(DEFAULTS)
        for claim in self.informer.list():
            if claim.status.allocation is not None:
                wanted.add(_holder(claim), claim.status.allocation)
        assert self.inventory.ledger._entries == wanted._entries


def _holder(claim: ResourceClaim) -> str:
    return f"{claim.key}#{claim.metadata.uid}"


steps = st.tuples(
    st.sampled_from(["c0", "c1", f"c{MANY - 1}", "new"]),
    st.sampled_from(["drop", "free", "a", "b", "successor"]),
)


def change(claims: Claims, found: Iterator[tuple[str, str]]) -> None:
    for name, step in found:
        if step == "drop":
            claims.drop(name)
        elif step == "successor":
            claims.put(name, "a", uid="successor")
        else:
            claims.put(name, None if step == "free" else step)


@settings(max_examples=40)
@given(*(st.lists(steps, max_size=4) for _ in range(4)))
def test_the_ledger_has_all_claims_once_it_is_loaded(
    before: list[tuple[str, str]],
    first: list[tuple[str, str]],
    second: list[tuple[str, str]],
    after: list[tuple[str, str]],
) -> None:
    async def story() -> None:
        claims = Claims()
        for number in range(MANY):
            claims.put(f"c{number}", f"d{number}")
        change(claims, iter(before))
        assert not claims.inventory.ledger._entries
        loads = [asyncio.create_task(claims.inventory.load()) for _ in range(2)]
        for found in (first, second):
            await asyncio.sleep(0)
            change(claims, iter(found))
        assert not loads[0].done()
        await asyncio.gather(*loads)
        claims.assert_ledger_is_right()
        change(claims, iter(after))
        claims.assert_ledger_is_right()

    asyncio.run(story())


def test_claims_are_entered_once_and_changes_are_counted_from_then_on() -> None:
    async def story() -> None:
        claims = Claims()
        claims.put("c", "a")
        assert claims.inventory.version(DRIVER) == (0, 0)
        await claims.inventory.load()
        version = claims.inventory.version(DRIVER)
        await claims.inventory.load()
        assert claims.inventory.version(DRIVER) == version
        claims.put("c", "b")
        assert claims.inventory.version(DRIVER) != version

    asyncio.run(story())


def test_a_load_that_was_cancelled_is_done_again() -> None:
    async def story() -> None:
        claims = Claims()
        for number in range(MANY):
            claims.put(f"c{number}", f"d{number}")
        load = asyncio.create_task(claims.inventory.load())
        await asyncio.sleep(0)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        claims.drop("c1")
        await claims.inventory.load()
        claims.assert_ledger_is_right()

    asyncio.run(story())
