"""Affected pods and claims: indexes from slices and rules to claims, and from devices to their taints.

No lookup scans the whole cluster, except for a rule that does not name a driver.
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
from allot.client.steps import Steps
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
CLAIMS_AT_ONCE: Final = 50
"""Claims that are processed before other tasks get a turn."""


class Affected:
    """Reads from the informers; has no state of its own."""

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
        self._tainted = slices.store.index_values(_TAINTED)
        self._selectors = rules.store.index_values(_SELECTOR) if rules is not None else ()

    # --- taints of a device ---

    @property
    def has_evicting_taints(self) -> bool:
        """Whether any device may have a NoExecute taint, of its own or of a rule."""
        return bool(self._tainted or self._selectors)

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
        """Rules are indexed by their selector: each part equals the device's, or is empty."""
        if self._rules is None or not self._rules.store:
            return
        for parts in product(*((part, "") for part in device)):
            yield from self._rules.by_index(_SELECTOR, _text("rule", *parts))

    # --- pods to evict ---

    def eviction_of(self, pod: Pod) -> Eviction | None:
        keys = (ObjectKey(pod.metadata.namespace, name) for name in claim_names(pod))
        claims = (claim for key in keys if (claim := self._claims.get(key)) is not None)
        return pod_eviction(pod, claims, self.taints_of)

    def consumers(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods that a claim is reserved for, as far as the informer has them."""
        for consumer in claim.status.reserved_for:
            if consumer.api_group or consumer.resource != "pods":
                continue
            pod = self._pods.get(ObjectKey(claim.metadata.namespace, consumer.name))
            if pod is not None and pod.get("metadata", "uid") == consumer.uid:
                yield pod

    # --- pods affected by a slice ---

    def has_taints(self, slice_: ResourceSlice) -> bool:
        """Whether its pool has tainted devices, which this slice may add, replace or remove."""
        spec = slice_.spec
        place = _text("pool", spec.driver, spec.pool.name)
        return bool(self._slices.store.keys_by_index(_TAINTED, place)) or any(
            True for _ in tainted_devices(slice_)
        )

    def finding_pods_of_pool(
        self, driver: str, pool: str, before: Iterable[DeviceId]
    ) -> Steps[list[Pod]]:
        """The pods with devices of a pool that are tainted, or were `before`; in steps."""
        devices = set(before)
        for slice_ in self._slices.by_index(_TAINTED, _text("pool", driver, pool)):
            devices.update(tainted_devices(slice_))
            yield
        found: list[Pod] = []
        for position, device in enumerate(devices, 1):
            for claim in self._claims.by_index(_DEVICES, _text("device", *device)):
                found += self.consumers(claim)
            if not position % CLAIMS_AT_ONCE:
                yield
        return found

    # --- pods affected by a rule ---

    def claims_of(self, rule: DeviceTaintRule) -> list[ResourceClaim]:
        """Allocated claims that may have devices which the rule selects: a superset."""
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

    def finding_pods_of(self, rule: DeviceTaintRule) -> Steps[list[Pod]]:
        """The pods with devices that the rule selects, in steps."""
        found: list[Pod] = []
        for position, claim in enumerate(self.claims_of(rule), 1):
            if any(selects(rule, device) for device in _devices(claim)):
                found += self.consumers(claim)
            if not position % CLAIMS_AT_ONCE:
                yield
        return found

    def measuring_reach_of(
        self, rule: DeviceTaintRule, *, count_devices: bool = False
    ) -> Steps[Reach]:
        """How many pods the rule evicts, or would evict with the effect NoExecute; in steps."""
        pods = yield from self._finding_pods_to_evict(rule)
        namespaces = {key.namespace for key in pods}
        reach = Reach(len(pods), len(namespaces))
        if not count_devices:
            return reach
        published = yield from self._counting_published_devices(rule)
        allocated = yield from self._counting_allocated_devices(rule)
        return reach._replace(published_devices=published, allocated_devices=allocated)

    def _finding_pods_to_evict(self, rule: DeviceTaintRule) -> Steps[set[ObjectKey]]:
        taints_of = _taint_of_rule(rule)
        found: set[ObjectKey] = set()
        for position, claim in enumerate(self.claims_of(rule), 1):
            if not position % CLAIMS_AT_ONCE:
                yield
            if claim_eviction(claim, taints_of) is None:
                continue
            for pod in self.consumers(claim):
                if can_be_evicted(pod) and claim.metadata.name in claim_names(pod):
                    found.add(pod.key)
        return found

    def _counting_published_devices(self, rule: DeviceTaintRule) -> Steps[int]:
        count = 0
        generations: dict[tuple[str, str], int] = {}
        for slice_ in self._slices.list():
            spec = slice_.spec
            devices = (spec.device_id(device) for device in spec.devices or ())
            selected = sum(selects(rule, device) for device in devices)
            if selected:
                pool = spec.driver, spec.pool.name
                if pool not in generations:
                    generations[pool] = self._newest_generation(*pool)
                count += selected if spec.pool.generation == generations[pool] else 0
            yield
        return count

    def _counting_allocated_devices(self, rule: DeviceTaintRule) -> Steps[int]:
        count = 0
        for position, claim in enumerate(self.claims_of(rule), 1):
            count += sum(selects(rule, device) for device in _devices(claim))
            if not position % CLAIMS_AT_ONCE:
                yield
        return count


def rule_ref(rule: DeviceTaintRule) -> RuleRef:
    return RuleRef(rule.metadata.name, rule.metadata.uid)


def _taint_of_rule(rule: DeviceTaintRule) -> TaintsOf:
    """Only the rule's taint, as if its effect was NoExecute."""
    taint = EvictingTaint(replace(rule.spec.taint, effect=NO_EXECUTE), rule_ref(rule))

    def taints_of(device: DeviceId) -> Iterable[EvictingTaint]:
        return (taint,) if selects(rule, device) else ()

    return taints_of


# --- index functions ---


def _text(*parts: str) -> str:
    return "\n".join(parts)


def _devices(claim: ResourceClaim) -> tuple[DeviceId, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(result.device_id for result in results)


def _device_values(claim: ResourceClaim) -> Iterable[str]:
    for driver, pool, device in _devices(claim):
        yield _text("driver", driver)
        yield _text("pool", driver, pool)
        yield _text("device", driver, pool, device)


def _pool_values(slice_: ResourceSlice) -> Iterable[str]:
    yield _text("pool", slice_.spec.driver, slice_.spec.pool.name)


def tainted_devices(slice_: ResourceSlice) -> Iterator[DeviceId]:
    """Devices with a NoExecute taint in the slice itself."""
    for device in slice_.spec.devices or ():
        if any(taint.effect == NO_EXECUTE for taint in device.taints):
            yield slice_.spec.device_id(device)


def _tainted_values(slice_: ResourceSlice) -> Iterable[str]:
    for device in tainted_devices(slice_):
        yield _text("pool", device.driver, device.pool)
        yield _text("device", *device)


def _selector_values(rule: DeviceTaintRule) -> Iterable[str]:
    """Rules with the effect NoExecute, by their selector; parts that are not set are empty."""
    selector = rule.spec.device_selector
    if selector is not None and rule.spec.taint.effect == NO_EXECUTE:
        yield _text("rule", selector.driver or "", selector.pool or "", selector.device or "")
