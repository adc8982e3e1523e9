"""Devices by node, filtered by a search."""

from __future__ import annotations

from allot.allocation.devices import PoolId
from allot.questions.device_holders import Holder
from allot.questions.devices import DeviceRow, DeviceUse
from allot.terminal.device_index import DeviceIndex
from allot.terminal.search_query import SearchQuery


def rows(node: str, pool: str, *devices: str, **fields: object) -> tuple[DeviceRow, ...]:
    return tuple(DeviceRow("gpu", pool, name, node, **fields) for name in devices)  # type: ignore[arg-type]


HELD = {
    "state": DeviceUse.HELD,
    "held_by": (Holder("team/claim", ("team/trainer-1",)),),
}
POOLS = {
    PoolId("gpu", "node-10"): rows("node-10", "node-10", "a", "b"),
    PoolId("gpu", "node-2"): rows("node-2", "node-2", "a", **HELD),
    PoolId("nic", "node-2"): rows("node-2", "node-2-nics", "n", model="ConnectX"),
    PoolId("gpu", "rack"): rows("", "rack", "r"),
}


def indexed(text: str = "") -> DeviceIndex:
    index = DeviceIndex()
    index.update(POOLS, SearchQuery.parse(text))
    return index


def test_nodes_are_in_natural_order_and_pools_without_a_node_last() -> None:
    index = indexed()

    assert [group.label for group in index.groups] == ["node-2", "node-10", "pool rack"]
    assert [row.device for row in index.rows] == ["a", "n", "a", "b", "r"]
    assert index.states == {DeviceUse.FREE: 4, DeviceUse.HELD: 1}


def test_search_by_words() -> None:
    assert [row.device for row in indexed("TRAINER").rows] == ["a"]
    assert [row.device for row in indexed("node-2 connectx").rows] == ["n"]
    assert [row.pool for row in indexed("free !node-10").rows] == ["node-2-nics", "rack"]
    assert indexed("nothing").groups == ()
    assert sum(indexed("nothing").states.values()) == 5, "counted are all"


def test_pools_come_change_and_go() -> None:
    index = indexed()
    changed = dict(POOLS)
    del changed[PoolId("gpu", "rack")]
    changed[PoolId("gpu", "node-2")] = rows("node-2", "node-2", "a", "z")

    index.update(changed, SearchQuery())

    assert [row.device for row in index.rows] == ["a", "z", "n", "a", "b"]
    assert index.states == {DeviceUse.FREE: 5}
