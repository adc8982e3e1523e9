"""The allocation cache: what claims would get on each node, until the devices that the node can use change.

Claims with equal specs get equal allocations, so one search serves all of them; only share ids are made anew for each.
Timeouts are cached too, and retried with backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, NamedTuple

from allot.allocation import TargetNode
from allot.allocation.pools import PoolId
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from allot.api.selectors import METADATA_NAME
from allot.scheduler.framework.backoff import TIMEOUT_BACKOFF
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.filter_results import NodeAllocation

MAX_CLAIM_SETS: Final = 100
"""Sets of claims in the cache."""
MAX_ALLOCATIONS: Final = 50_000
"""Allocations in the cache, of all sets of claims together."""


MAX_NODE_CLASSES: Final = 1000
"""Equivalence classes of nodes in the cache, per set of claims."""


class CachedAllocation(NamedTuple):
    """The allocation on one node, and the last change of its devices at that time."""

    last_change: int
    target: TargetNode
    allocation: NodeAllocation


class ClassAllocation(NamedTuple):
    """The allocation on one node of an equivalence class of nodes."""

    node: str
    pools: tuple[PoolId, ...]
    """The pools of that node, in the order in which all nodes of the class have them."""
    allocation: NodeAllocation
    without_results: NodeAllocation
    """The same for nodes that may not be chosen."""

    def on_node(
        self, node: str, pools: tuple[PoolId, ...], new_share_id: Callable[[], str]
    ) -> NodeAllocation:
        """The allocation on a node of the class: of equal devices in the pools of that node, with share ids of its own."""
        if node == self.node:
            return with_own_shares(self.allocation, new_share_id)
        pool_by_pool = dict(zip(self.pools, pools, strict=True))
        only_there = NodeSelectorRequirement(METADATA_NAME, "In", (node,))
        selector = NodeSelector((NodeSelectorTerm(match_fields=(only_there,)),))
        moved = [
            _in_pools(result, pool_by_pool, selector, new_share_id)
            for result in self.allocation.results
        ]
        return self.allocation._replace(results=tuple(moved))


def _in_pools(
    result: AllocationResult,
    pool_by_pool: dict[PoolId, PoolId],
    selector: NodeSelector,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    if result.node_selector is None:  # without devices
        return result
    moved = [
        replace(
            device,
            pool=pool_by_pool[PoolId(device.driver, device.pool)].pool,
            share_id=new_share_id() if device.share_id else device.share_id,
        )
        for device in result.devices.results
    ]
    devices = replace(result.devices, results=tuple(moved))
    return replace(result, devices=devices, node_selector=selector)


class NodeAllocations:
    """Allocations of one set of claims, by node and by equivalence class of nodes."""

    def __init__(self) -> None:
        self._by_node: dict[str, CachedAllocation] = {}
        self._by_node_class: dict[Hashable, ClassAllocation] = {}
        self.retries = 0
        """How often allocations were dropped although no device had changed."""
        self._stale: list[str] = []
        self._timeouts_in_a_row = 0
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._by_node) + len(self._by_node_class)

    def get(self, target: TargetNode, last_change: int) -> NodeAllocation | None:
        """The allocation on a node whose devices changed last at `last_change`, if it is cached."""
        cached = self._by_node.get(target.name)
        if cached is None or cached.last_change != last_change or cached.target is not target:
            return None
        return cached.allocation

    def put(self, target: TargetNode, last_change: int, allocation: NodeAllocation) -> None:
        if allocation.status.code is not Code.ERROR:  # an error names the claim
            self._by_node[target.name] = CachedAllocation(last_change, target, allocation)

    def put_stale(self, target: TargetNode, last_change: int, allocation: NodeAllocation) -> None:
        """Add an allocation from before the last change of the devices. It counts until `forget_stale`."""
        self.put(target, last_change, allocation)
        self._stale.append(target.name)

    def forget_stale(self) -> None:
        if self._stale:
            self.retries += 1  # results that were derived from them are invalid, too
        for name in self._stale:
            self._by_node.pop(name, None)
        self._stale.clear()

    def entries(self) -> Iterable[CachedAllocation]:
        return self._by_node.values()

    # --- timeouts ---

    def note_timeouts(self, nodes: int, now: float) -> None:
        """Record the number of nodes that timed out; they are retried with backoff."""
        self._timeouts_in_a_row = self._timeouts_in_a_row + 1 if nodes else 0
        self._retry_at = now + TIMEOUT_BACKOFF.seconds(self._timeouts_in_a_row)

    @property
    def has_timeouts(self) -> bool:
        """Whether nodes timed out in the last search."""
        return self._timeouts_in_a_row > 0

    def retry_timeouts(self, now: float) -> None:
        """Forget the nodes that timed out, if their backoff is over."""
        if self.has_timeouts and now >= self._retry_at and self.forget_timeouts():
            self._retry_at = now + TIMEOUT_BACKOFF.seconds(self._timeouts_in_a_row)

    def forget_timeouts(self) -> int:
        """Forget the nodes that timed out; their number."""
        slow = [name for name, cached in self._by_node.items() if cached.allocation.timed_out]
        for name in slow:
            del self._by_node[name]
        if slow:
            self.retries += 1
            self._by_node_class = {
                node_class: known
                for node_class, known in self._by_node_class.items()
                if not known.allocation.timed_out
            }
        return len(slow)

    def get_by_node_class(self, node_class: Hashable) -> ClassAllocation | None:
        """The allocation on one of the nodes of a class."""
        return self._by_node_class.get(node_class)

    def put_by_node_class(
        self,
        node_class: Hashable,
        node: str,
        pools: tuple[PoolId, ...],
        allocation: NodeAllocation,
    ) -> None:
        """The allocation on a node of a class, and the pools of that node."""
        if allocation.status.code is not Code.ERROR:
            if len(self._by_node_class) >= MAX_NODE_CLASSES:
                self._by_node_class.clear()
            without_results = allocation._replace(results=())
            self._by_node_class[node_class] = ClassAllocation(
                node, pools, allocation, without_results
            )


class AllocationCache:
    """Allocations of the most recently used sets of claims."""

    def __init__(self) -> None:
        self._by_claims: dict[Hashable, NodeAllocations] = {}

    def for_claims(self, key: Hashable) -> NodeAllocations:
        """The allocations of claims with this key. The least recently used keys are dropped."""
        cached = self._by_claims
        found = cached.pop(key, None)
        if found is None:
            found = NodeAllocations()
            while cached and (len(cached) >= MAX_CLAIM_SETS or self._total() > MAX_ALLOCATIONS):
                del cached[next(iter(cached))]
        cached[key] = found
        return found

    def _total(self) -> int:
        return sum(map(len, self._by_claims.values()))


def with_own_shares(allocation: NodeAllocation, new_share_id: Callable[[], str]) -> NodeAllocation:
    """The allocation for another set of equal claims: with share ids of its own."""
    if not _has_shares(allocation):
        return allocation
    results = tuple([_with_own_shares(result, new_share_id) for result in allocation.results])
    return allocation._replace(results=results)


def _has_shares(allocation: NodeAllocation) -> bool:
    for result in allocation.results:
        for device in result.devices.results:
            if device.share_id:
                return True
    return False


def _with_own_shares(result: AllocationResult, new_share_id: Callable[[], str]) -> AllocationResult:
    shared = tuple(
        replace(device, share_id=new_share_id()) if device.share_id else device
        for device in result.devices.results
    )
    return replace(result, devices=replace(result.devices, results=shared))
