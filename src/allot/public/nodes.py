"""A node of a snapshot: its devices, and allocation on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from allot.allocation import AllocationProblem, TargetNode
from allot.allocation.explain.amounts import counted
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.core import Node
from allot.public.allocations import MAX_STEPS, Allocation
from allot.public.devices import Device, device_of

if TYPE_CHECKING:
    from allot.public.snapshot import ClusterSnapshot

ClaimLike = str | ResourceClaim | ResourceClaimTemplate | Mapping[str, Any]
"""A claim by name (`name` or `namespace/name`), an API object, or a manifest as a dictionary."""


class NodeSnapshot:
    """A node at one moment."""

    def __init__(self, snapshot: ClusterSnapshot, node: Node) -> None:
        self._snapshot = snapshot
        self._target = TargetNode.of(node)
        self.object = node
        """The Node object; without a manifest it has only a name."""

    @property
    def name(self) -> str:
        return self._target.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self._target.labels

    @property
    def devices(self) -> tuple[Device, ...]:
        """Devices that pods on this node can use, in the order in which allocation tries them."""
        inventory, ledger = self._snapshot.inventory, self._snapshot.ledger
        return tuple(
            device_of(
                each.device,
                each.id,
                each.taints,
                ledger.holders(each.id),
            )
            for each in inventory.view(self._target).devices
        )

    def allocate(self, *claims: ClaimLike, max_steps: int = MAX_STEPS) -> Allocation:
        """Allocates these claims together on this node, as Kubernetes would: all of them, or none.

        The snapshot does not change: `snapshot.assume(allocation)` returns the one after it. Devices that the
        claims already hold are free for them.
        """
        if not claims:
            raise TypeError("allocate() needs at least one claim")
        wanted = [self._snapshot._claim_of(claim) for claim in claims]
        problem = AllocationProblem(
            self._target,
            wanted,
            self._snapshot.device_classes,
            self._snapshot.inventory,
            self._snapshot._ledger_without({str(claim.key) for claim in wanted}),
        )
        return Allocation(problem, max_steps)

    def __repr__(self) -> str:
        devices = self.devices
        free = sum(device.is_free for device in devices)
        return f"<NodeSnapshot {self.name}: {counted(len(devices), 'device')}, {free} free>"
