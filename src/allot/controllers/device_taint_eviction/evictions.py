"""When a claim's pods have to go, because of which taints. Times and objects in, times out.

Tolerations are those that were copied into the allocation. Only such with the effect NoExecute itself delay an
eviction: one without an effect lets a claim have the device, but not keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import DeviceId
from allot.api.resource import NO_EXECUTE, DeviceTaint, DeviceToleration
from allot.api.slices import ResourceSlice
from allot.api.taints import tolerates
from allot.controllers.pod_disruption import is_deleting

LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class RuleRef(NamedTuple):
    """One particular rule."""

    name: str
    uid: str


class EvictingTaint(NamedTuple):
    """A NoExecute taint, and the rule that it comes from, if it is not the device's own."""

    taint: DeviceTaint
    rule: RuleRef | None = None


class Eviction(NamedTuple):
    """When to evict. The rules are all that ask for it, not only the one that does so first."""

    at: datetime
    rules: frozenset[RuleRef] = frozenset()


TaintsOf = Callable[[DeviceId], Iterable[EvictingTaint]]


def own_evicting_taints(
    device: DeviceId, slices: Iterable[ResourceSlice], newest_generation: int
) -> tuple[DeviceTaint, ...]:
    """What the device's driver says about it. Outdated slices say nothing."""
    return tuple(
        taint
        for slice_ in slices
        if slice_.spec.pool.generation == newest_generation
        for published in slice_.spec.devices or ()
        if published.name == device.device
        for taint in published.taints
        if taint.effect == NO_EXECUTE
    )


def eviction_time(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> datetime | None:
    """When a device with this taint has to be left; None if it is tolerated forever."""
    since = taint.time_added or LONG_AGO
    seconds = []
    for toleration in tolerations:
        if toleration.effect == NO_EXECUTE and tolerates(
            toleration, taint, comparison_operators=False
        ):
            if toleration.toleration_seconds is None:
                return None
            seconds.append(max(0, toleration.toleration_seconds))
    try:
        return since + timedelta(seconds=min(seconds, default=0))
    except OverflowError:  # as good as never, but not forever
        return NEVER


def claim_eviction(claim: ResourceClaim, taints_of: TaintsOf) -> Eviction | None:
    """When those who use the claim have to go."""
    allocation = claim.status.allocation
    evictions = []
    for result in allocation.devices.results if allocation is not None else ():
        for taint, rule in taints_of(result.device_id):
            at = eviction_time(taint, result.tolerations)
            if at is not None:
                evictions.append(Eviction(at, frozenset((rule,) if rule is not None else ())))
    return earliest(evictions)


def earliest(evictions: Iterable[Eviction]) -> Eviction | None:
    """All of them in one."""
    found = tuple(evictions)
    if not found:
        return None
    rules: frozenset[RuleRef] = frozenset().union(*(eviction.rules for eviction in found))
    return Eviction(min(eviction.at for eviction in found), rules)


def can_be_evicted(pod: Pod) -> bool:
    """A pod that runs, and is to go on running."""
    return bool(pod.node_name) and not is_deleting(pod) and not pod.is_finished


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    return any(
        consumer.uid == uid and not consumer.api_group and consumer.resource == "pods"
        for consumer in claim.status.reserved_for
    )


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The claims that the pod uses, as far as they exist: named, made from templates, or for extended resources."""
    named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
    made = {entry.resource_claim_name for entry in pod.status.resource_claim_statuses}
    extended = pod.status.extended_resource_claim_status
    names = named | made | ({extended.resource_claim_name} if extended is not None else set())
    return tuple(name for name in names if name)


def pod_eviction(pod: Pod, claims: Iterable[ResourceClaim], taints_of: TaintsOf) -> Eviction | None:
    """When the pod has to go because of the claims it uses and has reserved."""
    if not can_be_evicted(pod):
        return None
    uid = pod.metadata.uid
    evictions = (
        claim_eviction(claim, taints_of) for claim in claims if is_reserved_for(claim, uid)
    )
    return earliest(eviction for eviction in evictions if eviction is not None)
