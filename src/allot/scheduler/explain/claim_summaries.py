"""Summaries of claims: devices, consumers, and missing binding conditions."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.claims import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from allot.scheduler.explain.explanations import (
    ClaimState,
    ClaimSummary,
    DeviceSummary,
    LackingCondition,
)
from allot.scheduler.explain.node_details import selected_nodes
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    ExaminedDevice,
    examined_devices,
)
from allot.scheduler.plugins.dynamic_resources.pod_extension import UNCREATED_CLAIM_NAME


def summary_of(
    claim: ResourceClaim, name: str = "", would_get: AllocationResult | None = None
) -> ClaimSummary:
    """The claim as it is; or, with `would_get`, as it would be. `name` is that of the pod's entry."""
    allocation = claim.status.allocation or would_get
    examined = {each.device: each for each in examined_devices(claim)}
    return ClaimSummary(
        claim=shown_key(claim),
        state=_state(claim),
        name=name,
        allocated_at=allocation.allocation_timestamp if allocation is not None else None,
        node_selection=selected_nodes(allocation.node_selector) if allocation is not None else "",
        devices=tuple(
            _device(result, examined.get(result.shared_device_id))
            for result in (allocation.devices.results if allocation is not None else ())
        ),
        reserved_for=tuple(map(_user, claim.status.reserved_for)),
    )


def shown_key(claim: ResourceClaim) -> str:
    """The claim's name for messages; a claim for extended resources has none yet."""
    if claim.metadata.name == UNCREATED_CLAIM_NAME:
        return "for extended resources"
    return str(claim.key)


def _user(consumer: ResourceClaimConsumerReference) -> str:
    kind = "pod" if consumer.resource == "pods" else consumer.resource
    return f"{kind}/{consumer.name}"


def _state(claim: ResourceClaim) -> ClaimState:
    if claim.metadata.deletion_timestamp is not None:
        return ClaimState.TERMINATING
    return ClaimState.PENDING if claim.status.allocation is None else ClaimState.ALLOCATED


def _device(
    result: DeviceRequestAllocationResult, examined: ExaminedDevice | None
) -> DeviceSummary:
    failure = examined.failure if examined is not None else None
    return DeviceSummary(
        request=result.request,
        device=f"{result.driver}/{result.pool}/{result.device}",
        share_id=result.share_id or "",
        consumed_capacity={
            name: str(amount) for name, amount in sorted(result.consumed_capacity.items())
        },
        admin_access=bool(result.admin_access),
        missing_conditions=examined.lacking if examined is not None else (),
        conditions=tuple(_lacking(examined)) if examined is not None else (),
        failure=f"{failure.reason}: {failure.message}" if failure is not None else "",
    )


def _lacking(examined: ExaminedDevice) -> Iterator[LackingCondition]:
    reported = {condition.type: condition for condition in examined.reported}
    for name in examined.lacking:
        found = reported.get(name)
        if found is None:
            yield LackingCondition(name)
        else:
            yield LackingCondition(
                name, found.status, found.reason, found.message, found.last_transition_time
            )
