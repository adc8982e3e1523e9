"""Claims as a scheduler leaves them, in one line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.claims import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.api.identities import SharedDeviceId
from allot.api.meta import (
    Condition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from allot.api.resource import OpaqueDeviceConfiguration
from allot.controllers.binding import Attachment
from allot.testing.builders import a_claim

DRIVER: Final = "fabric.example.com"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
READY: Final = "fabric.example.com/Ready"
FAILED: Final = "fabric.example.com/Failed"


def a_result(device: str = "gpu-0", driver: str = DRIVER, **fields: Any) -> Any:
    given: dict[str, Any] = {
        "request": "gpu",
        "driver": driver,
        "pool": "rack",
        "device": device,
        "binding_conditions": (READY,),
        "binding_failure_conditions": (FAILED,),
    }
    return DeviceRequestAllocationResult(**(given | fields))


def one_node(name: str) -> NodeSelector:
    only = NodeSelectorRequirement("metadata.name", "In", (name,))
    return NodeSelector((NodeSelectorTerm(match_fields=(only,)),))


def allocated(
    *results: Any,
    node: str = "n0",
    at: int = 0,
    uid: str = "u0",
    name: str = "claim",
    statuses: tuple[AllocatedDeviceStatus, ...] = (),
    config: tuple[DeviceAllocationConfiguration, ...] = (),
) -> ResourceClaim:
    """A claim with these devices (names, or results) since second `at`."""
    made = tuple(a_result(one) if isinstance(one, str) else one for one in results)
    allocation = AllocationResult(
        DeviceAllocationResult(made, config),
        one_node(node) if node else None,
        START + timedelta(seconds=at),
    )
    claim = a_claim(name=name)
    return replace(
        claim,
        metadata=replace(claim.metadata, uid=uid, generation=1),
        status=ResourceClaimStatus(allocation, (), statuses),
    )


def free(uid: str = "u0", name: str = "claim") -> ResourceClaim:
    claim = allocated(uid=uid, name=name)
    return replace(claim, status=ResourceClaimStatus())


def attachment(device: str = "gpu-0", node: str = "n0", uid: str = "u0", at: int = 0) -> Attachment:
    identity = SharedDeviceId(DRIVER, "rack", device)
    return Attachment(identity, node, uid, START + timedelta(seconds=at))


def a_status(
    device: str = "gpu-0", driver: str = DRIVER, share_id: str | None = None, **conditions: str
) -> AllocatedDeviceStatus:
    """`Ready="True"` is the condition READY of that status."""
    return AllocatedDeviceStatus(
        driver,
        "rack",
        device,
        share_id,
        tuple(
            Condition(f"{DRIVER}/{type_}", status, 1, START, "Old", "old")
            for type_, status in conditions.items()
        ),
    )


def a_config(
    source: str, parameters: Any, *requests: str, driver: str = DRIVER
) -> DeviceAllocationConfiguration:
    opaque = OpaqueDeviceConfiguration(driver, msgspec.Raw(msgspec.json.encode(parameters)))
    return DeviceAllocationConfiguration(source, requests, opaque)
