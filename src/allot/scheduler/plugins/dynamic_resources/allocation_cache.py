"""What claims would get on each node, remembered until the devices that the node can use change.

Claims that ask for the same get the same, so one search serves all of them; only shares get an identity of their own
for each. That a node took too long is remembered as well, until it is time to try again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, NamedTuple

from allot.allocation import TargetNode
from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.scheduler.framework.backoff import TIMEOUT_BACKOFF
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.filter_results import NodeAllocation

MAX_CLAIM_SETS: Final = 100
"""How many different sets of claims answers are remembered for."""
MAX_ALLOCATIONS: Final = 50_000
"""How many answers are remembered for all of them together."""


MAX_NODE_CLASSES: Final = 1000
"""How many kinds of nodes answers are remembered for, per set of claims."""


class CachedAllocation(NamedTuple):
    """An answer for one node, and since when its devices are as they were then."""

    last_change: int
    target: TargetNode
    allocation: NodeAllocation


class NodeAllocations:
    """Answers for one set of claims, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, CachedAllocation] = {}
        self._by_node_class: dict[Hashable, NodeAllocation] = {}
        self.retries = 0
        """How often answers were forgotten although no devices had changed."""
        self._stale: list[str] = []
        self._timeouts_in_a_row = 0
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._by_node) + len(self._by_node_class)

    def get(self, target: TargetNode, last_change: int) -> NodeAllocation | None:
        """The answer for a node whose devices changed last at `last_change`, if it is known."""
        cached = self._by_node.get(target.name)
        if cached is None or cached.last_change != last_change or cached.target is not target:
            return None
        return cached.allocation

    def put(self, target: TargetNode, last_change: int, allocation: NodeAllocation) -> None:
        if allocation.status.code is not Code.ERROR:  # an error names the claim
            self._by_node[target.name] = CachedAllocation(last_change, target, allocation)

    def put_stale(self, target: TargetNode, last_change: int, allocation: NodeAllocation) -> None:
        """An answer from before the devices changed last. It counts until `forget_stale`."""
        self.put(target, last_change, allocation)
        self._stale.append(target.name)

    def forget_stale(self) -> None:
        if self._stale:
            self.retries += 1  # what was concluded from them does not count any more either
        for name in self._stale:
            self._by_node.pop(name, None)
        self._stale.clear()

    def entries(self) -> Iterable[CachedAllocation]:
        return self._by_node.values()

    # --- nodes that took too long ---

    def note_timeouts(self, nodes: int, now: float) -> None:
        """So many nodes took too long this time. If any, they are left alone for a while, each time longer."""
        self._timeouts_in_a_row = self._timeouts_in_a_row + 1 if nodes else 0
        self._retry_at = now + TIMEOUT_BACKOFF.after(self._timeouts_in_a_row)

    def retry_timeouts(self, now: float) -> None:
        """Give nodes that took too long another chance, if they have been left alone long enough."""
        if self._timeouts_in_a_row and now >= self._retry_at and self.forget_timeouts():
            self._retry_at = now + TIMEOUT_BACKOFF.after(self._timeouts_in_a_row)

    def forget_timeouts(self) -> int:
        """Forget the nodes that took too long; how many there were."""
        slow = [name for name, cached in self._by_node.items() if cached.allocation.timed_out]
        for name in slow:
            del self._by_node[name]
        if slow:
            self.retries += 1
            self._by_node_class = {
                node_class: allocation
                for node_class, allocation in self._by_node_class.items()
                if not allocation.timed_out
            }
        return len(slow)

    def get_by_node_class(self, node_class: Hashable) -> NodeAllocation | None:
        """The answer for a node that looks like this; without results, which name its devices."""
        return self._by_node_class.get(node_class)

    def put_by_node_class(self, node_class: Hashable, allocation: NodeAllocation) -> None:
        if allocation.status.code is not Code.ERROR:
            if len(self._by_node_class) >= MAX_NODE_CLASSES:
                self._by_node_class.clear()
            self._by_node_class[node_class] = allocation._replace(results=())


class AllocationCache:
    """Answers for the sets of claims that were asked about last."""

    def __init__(self) -> None:
        self._by_claims: dict[Hashable, NodeAllocations] = {}

    def for_claims(self, key: Hashable) -> NodeAllocations:
        """The answers for claims that ask for this. What nobody asked about lately is dropped."""
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
    """The answer for another set of claims that ask for the same: a share belongs to one claim alone."""
    results = tuple(_with_own_shares(result, new_share_id) for result in allocation.results)
    return allocation._replace(results=results)


def _with_own_shares(result: AllocationResult, new_share_id: Callable[[], str]) -> AllocationResult:
    devices = result.devices.results
    if not any(device.share_id for device in devices):
        return result
    shared = tuple(
        replace(device, share_id=new_share_id()) if device.share_id else device
        for device in devices
    )
    return replace(result, devices=replace(result.devices, results=shared))
