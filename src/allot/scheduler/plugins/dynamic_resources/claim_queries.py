"""Questions about a pod's claims, for explanations: what is to be allocated, and what prevents it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from allot.allocation import AllocationProblem
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME, ClaimAllocator
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    PodDevices,
    is_usable_on,
    unknown_class_names,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import Unusable, claims_of
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class ClaimQueries(ClaimAllocator):
    """What explanations ask about. Answers come from the state of a cycle; nothing is cached for them."""

    def drivers_on(self, node: str) -> frozenset[str]:
        """The drivers with devices on a node."""
        return self._devices.drivers_on(node)

    def last_change(self, node: str) -> int:
        """A number that changes whenever the devices for a node, or which of them are free, change."""
        return self._devices.last_change(node)

    def node_equivalence_class(self, state: CycleState, node: NodeInfo) -> Hashable | None:
        """Equal for nodes on which the pod's claims get equal devices; None if unknown."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return None
        return self._node_equivalence_class(devices, self._devices.target(node))

    def wanted(self, state: CycleState) -> tuple[Hashable, tuple[str, ...]] | None:
        """The equivalence key of the claims to allocate for a pod, and the names of the claims."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or not devices.key:
            return None
        names = (str(claim.key) for claim in devices.to_allocate)
        return devices.key, tuple(names)

    def allocation_problem(self, state: CycleState, node: NodeInfo) -> AllocationProblem | None:
        """The allocation problem of a pod on a node; None if all its claims are allocated."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return None
        wanted = self._wanted(devices, node)
        if not wanted:
            return None
        return self.problem_for(wanted, self._devices.target(node), devices.avoided)

    def allocated_claims(
        self, state: CycleState, node: NodeInfo
    ) -> tuple[ResourceClaim, ...] | None:
        """The pod's claims to allocate, with the allocations that they get on the node; None if there are none there.

        The claim for extended resources comes last, if the pod needs one on this node.
        """
        devices: PodDevices | None = state.get(NAME)
        wanted = [] if devices is None else self._wanted(devices, node)
        if devices is None or not wanted:
            return ()
        target = self._devices.target(node)
        answer = self._allocation_on(devices, wanted, target, state.time, with_results=True)
        if not answer.results:
            return None
        return tuple(
            replace(claim, status=replace(claim.status, allocation=result))
            for claim, result in zip(wanted, answer.results, strict=True)
        )

    @property
    def class_names(self) -> Iterable[str]:
        """The names of all device classes."""
        return self._devices.classes

    def unknown_class_names(self, pod: PodInfo) -> tuple[str, ...]:
        """The device classes that claims of a pod ask for, and that do not exist."""
        claims = claims_of(pod, self._tracker.get)
        if isinstance(claims, Unusable):
            return ()
        return unknown_class_names(claims, self._devices.classes)

    def has_alternatives(self, state: CycleState) -> bool:
        """Whether claims that are to be allocated for the pod have prioritized alternatives."""
        devices: PodDevices | None = state.get(NAME)
        return devices is not None and devices.has_alternatives

    def unusable_claims(self, state: CycleState, node: NodeInfo) -> list[tuple[ResourceClaim, str]]:
        """Claims whose devices the node cannot use, or that have failed, with the failure."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return []
        target = self._devices.target(node)
        found = []
        for claim in devices.claims:
            allocation = claim.status.allocation
            if allocation is None:
                continue
            failure = self._why_unusable(claim)
            if failure or not is_usable_on(allocation, target):
                found.append((claim, failure))
        return found
