"""Devices by node, filtered and counted. Pools that have not changed since the last time are not looked at again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from allot.allocation.devices import PoolId
from allot.questions.devices import DeviceRow, DeviceUse
from allot.terminal.search_query import SearchQuery

NO_NODE: Final = ""
Rows = tuple[DeviceRow, ...]


class DevicesOfNode(NamedTuple):
    """The devices of a node; of pools that are not on one node, each pool is a group."""

    node: str
    label: str
    pools: tuple[Rows, ...]

    @property
    def rows(self) -> Iterator[DeviceRow]:
        return (row for pool in self.pools for row in pool)

    @property
    def size(self) -> int:
        return sum(map(len, self.pools))

    @property
    def free(self) -> int:
        return sum(row.is_free for row in self.rows)

    @property
    def held(self) -> int:
        return sum(row.is_held for row in self.rows)


class _Pool(NamedTuple):
    """What is known about the rows of a pool."""

    rows: Rows
    states: tuple[tuple[DeviceUse, int], ...]
    matching: Rows
    by_node: tuple[tuple[str, Rows], ...]


class DeviceIndex:
    """The devices that match a query, and the number of all devices by state."""

    def __init__(self) -> None:
        self.query = SearchQuery()
        self.groups: tuple[DevicesOfNode, ...] = ()
        self.rows: list[DeviceRow] = []
        self.states: Counter[DeviceUse] = Counter()
        """Of all devices, also of those that do not match."""
        self._pools: dict[PoolId, _Pool] = {}

    def update(self, pools: Mapping[PoolId, Rows], query: SearchQuery) -> None:
        """Take the rows of all pools."""
        if query != self.query:
            self.query = query
            self._pools = {}
        known, self._pools = self._pools, {}
        by_node: dict[tuple[str, str], list[Rows]] = {}
        states: Counter[DeviceUse] = Counter()
        for id_ in sorted(pools):
            pool = known.get(id_)
            if pool is None or pool.rows is not pools[id_]:
                pool = self._examined(pools[id_])
            self._pools[id_] = pool
            for state, number in pool.states:
                states[state] += number
            for node, rows in pool.by_node:
                label = node or f"pool {id_.pool}"
                by_node.setdefault((node, label), []).append(rows)
        self.states = states
        self.groups = tuple(
            DevicesOfNode(node, label, tuple(found))
            for (node, label), found in sorted(by_node.items(), key=_group_order)
        )
        self.rows = [row for group in self.groups for pool in group.pools for row in pool]

    def _examined(self, rows: Rows) -> _Pool:
        matching = rows
        if self.query:
            matching = tuple(row for row in rows if self.query.matches(searchable(row)))
        by_node: dict[str, list[DeviceRow]] = {}
        for row in matching:
            by_node.setdefault(row.node, []).append(row)
        split = tuple((node, tuple(found)) for node, found in by_node.items())
        states = Counter(row.state for row in rows)
        return _Pool(rows, tuple(states.items()), matching, split)


def searchable(row: DeviceRow) -> Iterator[str]:
    """The texts of a device that a search looks at."""
    yield from (row.driver, row.pool, row.device, row.node, row.model, row.state, *row.taints)
    for holder in row.held_by:
        yield holder.claim
        yield from holder.pods


def _group_order(item: tuple[tuple[str, str], object]) -> tuple[bool, tuple[tuple[int, str], ...]]:
    (node, label), _ = item
    return not node, natural_order(label)


@lru_cache(maxsize=20_000)
def natural_order(name: str) -> tuple[tuple[int, str], ...]:
    """A key for sorting that puts node-2 before node-10."""
    return tuple(
        (int(part), "") if part.isdecimal() and part.isascii() and len(part) < 19 else (-1, part)
        for part in re.split(r"([0-9]+)", name[:300])
        if part
    )
