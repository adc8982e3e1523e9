"""Who is concerned by what: indexes that lead from slices and rules to claims, and from devices to their taints.

No look-up goes through the whole cluster, except for a rule that does not name a driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from allot.allocation.taints import selects
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.core import Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.api.resource import NO_EXECUTE
from allot.api.slices import ResourceSlice
from allot.client.informer import Informer
from allot.controllers.device_taint_eviction.evictions import (
    EvictingTaint,
    Eviction,
    RuleRef,
    TaintsOf,
    can_be_evicted,
    claim_eviction,
    claim_names,
    own_evicting_taints,
    pod_eviction,
)
from allot.controllers.device_taint_eviction.rule_status import Reach

_DEVICES: Final = "device-taint-eviction/devices"
_POOL: Final = "device-taint-eviction/pool"
_TAINTED: Final = "device-taint-eviction/tainted"
_SELECTOR: Final = "device-taint-eviction/selector"


class Affected:
    """Reads the copies that the informers keep; holds nothing itself."""

    def __init__(
        self,
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        slices: Informer[ResourceSlice],
        rules: Informer[DeviceTaintRule] | None,
    ) -> None:
        self._pods, self._claims, self._slices, self._rules = pods, claims, slices, rules
        claims.add_index(_DEVICES, _device_values)
        slices.add_index(_POOL, _pool_values)
        slices.add_index(_TAINTED, _tainted_values)
        if rules is not None:
            rules.add_index(_SELECTOR, _selector_values)

    # --- what a device has to bear ---

    def taints_of(self, device: DeviceId) -> Iterator[EvictingTaint]:
        """The NoExecute taints of a device: its own, and those of rules."""
        slices = self._slices.by_index(_TAINTED, _text("device", *device))
        if slices:
            newest = self._newest_generation(device.driver, device.pool)
            for taint in own_evicting_taints(device, slices, newest):
                yield EvictingTaint(taint)
        for rule in self._rules_about(device):
            yield EvictingTaint(rule.spec.taint, rule_ref(rule))

    def _newest_generation(self, driver: str, pool: str) -> int:
        slices = self._slices.by_index(_POOL, _text("pool", driver, pool))
        return max((slice_.spec.pool.generation for slice_ in slices), default=0)

    def _rules_about(self, device: DeviceId) -> Iterator[DeviceTaintRule]:
        """Rules are found by what they select: each part of it is the device's own, or left open."""
        if self._rules is None or not self._rules.store:
            return
        for parts in product(*((part, "") for part in device)):
            yield from self._rules.by_index(_SELECTOR, _text("rule", *parts))

    # --- who has to go ---

    def eviction_of(self, pod: Pod) -> Eviction | None:
        keys = (ObjectKey(pod.metadata.namespace, name) for name in claim_names(pod))
        claims = (claim for key in keys if (claim := self._claims.get(key)) is not None)
        return pod_eviction(pod, claims, self.taints_of)

    def consumers(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods for which a claim is reserved, as far as they are known."""
        for consumer in claim.status.reserved_for:
            if consumer.api_group or consumer.resource != "pods":
                continue
            pod = self._pods.get(ObjectKey(claim.metadata.namespace, consumer.name))
            if pod is not None and pod.metadata.uid == consumer.uid:
                yield pod

    def pods_of_devices(self, devices: Iterable[DeviceId]) -> Iterator[Pod]:
        for device in devices:
            for claim in self._claims.by_index(_DEVICES, _text("device", *device)):
                yield from self.consumers(claim)

    # --- what a slice means ---

    def tainted_devices(self, slice_: ResourceSlice) -> Iterator[DeviceId]:
        """The devices whose taints this slice brings, hides or takes away by its generation."""
        found = set(_tainted(slice_))
        spec = slice_.spec
        for other in self._slices.by_index(_TAINTED, _text("pool", spec.driver, spec.pool.name)):
            found.update(_tainted(other))
        yield from found

    # --- what a rule means ---

    def claims_of(self, rule: DeviceTaintRule) -> list[ResourceClaim]:
        """The allocated claims among which are all that have devices the rule selects."""
        selector = rule.spec.device_selector
        match selector and (selector.driver, selector.pool, selector.device):
            case None:
                return []
            case (str(driver), str(pool), str(device)):
                return self._claims.by_index(_DEVICES, _text("device", driver, pool, device))
            case (str(driver), str(pool), None):
                return self._claims.by_index(_DEVICES, _text("pool", driver, pool))
            case (str(driver), _, _):
                return self._claims.by_index(_DEVICES, _text("driver", driver))
            case _:
                return [claim for claim in self._claims.list() if claim.status.allocation]

    def pods_of(self, rule: DeviceTaintRule) -> Iterator[Pod]:
        for claim in self.claims_of(rule):
            if any(selects(rule, device) for device in _devices(claim)):
                yield from self.consumers(claim)

    def reach_of(self, rule: DeviceTaintRule, *, count_devices: bool = False) -> Reach:
        """Whom the rule evicts, or would evict if its effect was NoExecute."""
        pods = self._pods_to_evict(rule)
        namespaces = {key.namespace for key in pods}
        reach = Reach(len(pods), len(namespaces))
        if not count_devices:
            return reach
        return reach._replace(
            published_devices=self._published_devices(rule),
            allocated_devices=self._allocated_devices(rule),
        )

    def _pods_to_evict(self, rule: DeviceTaintRule) -> set[ObjectKey]:
        taints_of = _taint_of_rule(rule)
        found = set()
        for claim in self.claims_of(rule):
            if claim_eviction(claim, taints_of) is None:
                continue
            for pod in self.consumers(claim):
                if can_be_evicted(pod) and claim.metadata.name in claim_names(pod):
                    found.add(pod.key)
        return found

    def _published_devices(self, rule: DeviceTaintRule) -> int:
        count = 0
        for slice_ in self._slices.list():
            spec = slice_.spec
            devices = (
                DeviceId(spec.driver, spec.pool.name, device.name) for device in spec.devices or ()
            )
            selected = sum(selects(rule, device) for device in devices)
            if selected and spec.pool.generation == self._newest_generation(
                spec.driver, spec.pool.name
            ):
                count += selected
        return count

    def _allocated_devices(self, rule: DeviceTaintRule) -> int:
        return sum(
            selects(rule, device) for claim in self.claims_of(rule) for device in _devices(claim)
        )


def rule_ref(rule: DeviceTaintRule) -> RuleRef:
    return RuleRef(rule.metadata.name, rule.metadata.uid)


def _taint_of_rule(rule: DeviceTaintRule) -> TaintsOf:
    """The rule alone, as if its effect was NoExecute."""
    taint = EvictingTaint(replace(rule.spec.taint, effect=NO_EXECUTE), rule_ref(rule))

    def taints_of(device: DeviceId) -> Iterable[EvictingTaint]:
        return (taint,) if selects(rule, device) else ()

    return taints_of


# --- the indexes' values ---


def _text(*parts: str) -> str:
    return "\n".join(parts)


def _devices(claim: ResourceClaim) -> tuple[DeviceId, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(DeviceId(result.driver, result.pool, result.device) for result in results)


def _device_values(claim: ResourceClaim) -> Iterable[str]:
    for driver, pool, device in _devices(claim):
        yield _text("driver", driver)
        yield _text("pool", driver, pool)
        yield _text("device", driver, pool, device)


def _pool_values(slice_: ResourceSlice) -> Iterable[str]:
    yield _text("pool", slice_.spec.driver, slice_.spec.pool.name)


def _tainted(slice_: ResourceSlice) -> Iterator[DeviceId]:
    for device in slice_.spec.devices or ():
        if any(taint.effect == NO_EXECUTE for taint in device.taints):
            yield DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name)


def _tainted_values(slice_: ResourceSlice) -> Iterable[str]:
    for device in _tainted(slice_):
        yield _text("pool", device.driver, device.pool)
        yield _text("device", *device)


def _selector_values(rule: DeviceTaintRule) -> Iterable[str]:
    """Rules that evict, by what they select; parts that they leave open are empty."""
    selector = rule.spec.device_selector
    if selector is not None and rule.spec.taint.effect == NO_EXECUTE:
        yield _text("rule", selector.driver or "", selector.pool or "", selector.device or "")
