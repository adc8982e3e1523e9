"""When the pods of a claim are evicted, and because of which taints. Objects and times in, times out.

Tolerations are those that were copied into the allocation. Only those with the effect NoExecute delay an
eviction: one without an effect allows allocating the device, but not keeping it.
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
    """A rule by name and uid."""

    name: str
    uid: str


class EvictingTaint(NamedTuple):
    """A NoExecute taint, and the rule that it comes from, unless it is in the slice."""

    taint: DeviceTaint
    rule: RuleRef | None = None


class Eviction(NamedTuple):
    """When to evict. `rules` are all rules that cause it, not only the earliest."""

    at: datetime
    rules: frozenset[RuleRef] = frozenset()


TaintsOf = Callable[[DeviceId], Iterable[EvictingTaint]]


def own_evicting_taints(
    device: DeviceId, slices: Iterable[ResourceSlice], newest_generation: int
) -> tuple[DeviceTaint, ...]:
    """The taints in the device's slices of the newest generation."""
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
    """When pods are evicted because of this taint; None if it is tolerated forever."""
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
    except OverflowError:  # beyond the calendar; still not tolerated forever
        return NEVER


def claim_eviction(claim: ResourceClaim, taints_of: TaintsOf) -> Eviction | None:
    """When the pods that use the claim are evicted."""
    allocation = claim.status.allocation
    evictions = []
    for result in allocation.devices.results if allocation is not None else ():
        for taint, rule in taints_of(result.device_id):
            at = eviction_time(taint, result.tolerations)
            if at is not None:
                evictions.append(Eviction(at, frozenset((rule,) if rule is not None else ())))
    return earliest(evictions)


def earliest(evictions: Iterable[Eviction]) -> Eviction | None:
    """The earliest time, with the rules of all."""
    found = tuple(evictions)
    if not found:
        return None
    rules: frozenset[RuleRef] = frozenset().union(*(eviction.rules for eviction in found))
    return Eviction(min(eviction.at for eviction in found), rules)


def can_be_evicted(pod: Pod) -> bool:
    """Whether the pod is bound, not finished and not being deleted."""
    return bool(pod.node_name) and not is_deleting(pod) and not pod.is_finished


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    return any(
        consumer.uid == uid and not consumer.api_group and consumer.resource == "pods"
        for consumer in claim.status.reserved_for
    )


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The names of the pod's claims: named directly, created from templates, or for extended resources."""
    named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
    made = {entry.resource_claim_name for entry in pod.status.resource_claim_statuses}
    extended = pod.status.extended_resource_claim_status
    names = named | made | ({extended.resource_claim_name} if extended is not None else set())
    return tuple(name for name in names if name)


def pod_eviction(pod: Pod, claims: Iterable[ResourceClaim], taints_of: TaintsOf) -> Eviction | None:
    """When the pod is evicted because of the claims that are reserved for it."""
    if not can_be_evicted(pod):
        return None
    uid = pod.metadata.uid
    evictions = (
        claim_eviction(claim, taints_of) for claim in claims if is_reserved_for(claim, uid)
    )
    return earliest(eviction for eviction in evictions if eviction is not None)
