"""Devices that bind to a node (KEP-5007, `bindsToNode`) and are shared by claims on two nodes.

Nothing forbids that, but such a device can be attached to one of the nodes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from allot.allocation import Inventory, TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import AllocationResult
from allot.scheduler.plugins.dynamic_resources.filter_results import is_usable_on
from allot.scheduler.state.claim_tracker import ClaimTracker

ON_TWO_NODES: Final = "DeviceClaimedOnTwoNodes"
"""The reason of the events."""


def claimed_on_two_nodes(
    results: Iterable[AllocationResult],
    target: TargetNode,
    tracker: ClaimTracker,
    inventory: Inventory,
) -> Iterator[str]:
    """What to tell about devices that bind to `target` while another claim holds them on another node."""
    shared = {
        result.device_id
        for allocation in results
        for result in allocation.devices.results
        if result.share_id is not None or result.admin_access
    }
    if not shared:
        return
    for device in inventory.view(target, WorkMeter()).devices:
        if device.id not in shared or not device.device.binds_to_node:
            continue
        for claim, allocation in tracker.allocations_of(device.id):
            if not is_usable_on(allocation, target):
                yield (
                    f"device {device.id} binds to a node: it is claimed on node {target.name} "
                    f"while claim {claim} holds it on another node"
                )
