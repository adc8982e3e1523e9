"""Pods that wait for binding conditions (KEP-5007): what is missing, which controller is responsible, and the deadline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.client import resources
from allot.scheduler.explain.explanations import PodExplanation, PodState
from allot.scheduler.explain.node_details import selected_nodes
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    ExaminedDevice,
    NotReady,
    condition_states,
    examined_devices,
    readiness,
    shown_device,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import claim_keys, is_reserved_for
from allot.scheduler.state.pods import PodInfo


class BindingLimit(NamedTuple):
    """The binding timeout of a scheduler. `is_assumed`: it is unknown, and the default is used."""

    timeout: timedelta
    is_assumed: bool


class _Lacking(NamedTuple):
    """A device that is not ready, and the claim that has it."""

    claim: ResourceClaim
    examined: ExaminedDevice


def waiting(
    known: PodExplanation, pod: PodInfo, model: StaticScheduler, limit: BindingLimit
) -> PodExplanation | None:
    """The explanation of a pod that waits for binding conditions; None if it does not, or its timeout is over."""
    claims = [model.claim(key) for key in claim_keys(pod)]
    mine = [claim for claim in claims if claim is not None and is_reserved_for(claim, pod)]
    # An assumed limit says nothing about whether the wait is over.
    endless = timedelta(days=36_500)
    now = model.today()
    outlooks = [
        readiness(each, endless if limit.is_assumed else limit.timeout, now) for each in mine
    ]
    is_over = any(isinstance(outlook, BindingFailed) for outlook in outlooks)
    if is_over or not any(isinstance(outlook, NotReady) for outlook in outlooks):
        return None
    lacking = [
        _Lacking(claim, examined)
        for claim in mine
        for examined in examined_devices(claim)
        if examined.lacking
    ]
    since = min(
        (
            claim.status.allocation.allocation_timestamp
            for claim in mine
            if claim.status.allocation and claim.status.allocation.allocation_timestamp
        ),
        default=None,
    )
    missing = "; ".join(
        f"{shown_device(each.examined.device)}: {' and '.join(condition_states(each.examined))}"
        for each in lacking
    )
    node = pod.nominated_node_name
    where = f"node {node}" if node else _nodes_of(mine[0])
    return replace(
        known,
        state=PodState.WAITING_FOR_DEVICES,
        verdict=f"Pod {pod.key} has devices on {where} and waits until they are ready: {missing}."
        f" {_advice(lacking, node, model)}",
        reason=missing,
        node=node,
        since=since,
        deadline=None if since is None else since + limit.timeout,
        assumed_timeout_seconds=limit.timeout.total_seconds() if limit.is_assumed else None,
    )


def _advice(lacking: Sequence[_Lacking], node: str, model: StaticScheduler) -> str:
    """What to do. Devices that cannot become ready come before those that can."""
    if node and model.cluster.node(node) is None:
        return f"Node {node} does not exist any more: delete the pod, or wait until its scheduler gives the devices back."
    gone = [
        shown_device(each.examined.device) for each in lacking if not _is_published(each, model)
    ]
    if gone:
        is_one = len(gone) == 1
        return (
            f"{' and '.join(gone)} {'is' if is_one else 'are'} in no ResourceSlice any more:"
            f" publish {'it' if is_one else 'them'} again, or delete the pod, so that its successor"
            f" gets {'another device' if is_one else 'other devices'}."
        )
    drivers = " and ".join(sorted({each.examined.device.driver for each in lacking}))
    claims = " and ".join(sorted({each.claim.metadata.name for each in lacking}))
    if any(len(each.examined.reported) < len(each.examined.lacking) for each in lacking):
        return (
            f"The controller of driver {drivers} has to report this in status.devices of claim"
            f" {claims}: check that it runs and may write there."
        )
    return f"The controller of driver {drivers} has reported this: look there for the cause."


def _is_published(lacking: _Lacking, model: StaticScheduler) -> bool:
    device = lacking.examined.device
    wanted = device.device_id
    return any(
        wanted == slice_.spec.device_id(each)
        for slice_ in model.snapshot.of(resources.RESOURCE_SLICES)
        for each in slice_.spec.devices or ()
    )


def _nodes_of(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    return selected_nodes(allocation.node_selector if allocation is not None else None)
