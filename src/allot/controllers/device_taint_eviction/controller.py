"""The control loop: evicts each pod when its tolerations end, and writes the status of rules."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.core import Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.api.raw import RawObject
from allot.api.resource import NO_EFFECT, NO_EXECUTE
from allot.api.slices import ResourceSlice
from allot.client.cooperative import finish_with_pauses, with_pauses
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, reference_to
from allot.client.informer import Informer
from allot.client.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.client.steps import Steps
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.device_taint_eviction.affected import Affected, rule_ref, tainted_devices
from allot.controllers.device_taint_eviction.evictions import Eviction, RuleRef
from allot.controllers.device_taint_eviction.rule_status import (
    UPDATE_SECONDS,
    Reach,
    eviction_condition,
    is_final,
    seconds_until_update,
    with_condition,
)
from allot.controllers.eviction_metrics import EvictionMetrics
from allot.controllers.pod_disruption import Disruption, PodRef, disrupt, is_deleting, pod_ref
from allot.features import DEVICE_TAINT_RULES as RULES_GATE
from allot.features import DEVICE_TAINTS

log = logging.getLogger(__name__)

WHY: Final = Disruption(
    "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"
)
REASON: Final = "DeviceTaintManagerEviction"
ACTION: Final = "Evicting"
_RAW_RULES: Final = DEVICE_TAINT_RULES.as_raw()


class RuleSweep(NamedTuple):
    """Queue key: all pods that a rule affects, in one version of the rule."""

    number: int


class PoolSweep(NamedTuple):
    """Queue key: all pods with tainted devices of a pool."""

    driver: str
    pool: str
    what: str = "pool"
    """Distinguishes the key from that of a rule with the same names."""


class DeviceTaintEvictionController(QueueController[PodRef | RuleRef | RuleSweep | PoolSweep]):
    """Pods wait in the queue until their eviction is due; the decision is made on the state at that time."""

    name = "device-taint-eviction-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._metrics = EvictionMetrics("device_taint_eviction_controller", context.registry)
        self._waiting: dict[PodRef, Eviction] = {}
        """Pods with a pending eviction; an event is recorded when it is cancelled."""
        self._evicted: set[PodRef] = set()
        """Pods that were deleted, but that the informer still has."""
        self._evicted_by: Counter[str] = Counter()
        """Evicted pods by uid of the rule, since this controller started."""
        self._sweeps = 0
        self._rule_sweeps: dict[RuleSweep, DeviceTaintRule] = {}
        self._tainted_before: dict[PoolSweep, set[DeviceId]] = {}
        """Devices of slices that changed since their pool was last reconciled."""
        if DEVICE_TAINTS not in context.gates:
            return
        informers = context.informers
        self._pods = informers.informer(PODS)
        self._rules: Informer[DeviceTaintRule] | None = None
        if RULES_GATE in context.gates:
            self._rules = informers.informer(DEVICE_TAINT_RULES)
        claims = informers.informer(RESOURCE_CLAIMS)
        slices = informers.informer(RESOURCE_SLICES)
        self._affected = Affected(self._pods, claims, slices, self._rules)
        self._pods.add_handlers(self._pod_added, self._pod_updated, self._pod_deleted)
        claims.add_handlers(self._claim_changed, self._claim_updated, self._claim_changed)
        slices.add_handlers(self._slice_changed, self._slice_updated, self._slice_changed)
        if self._rules is not None:
            self._rules.add_handlers(self._rule_changed, self._rule_updated, self._rule_deleted)

    # --- event handlers ---

    @property
    def _may_evict(self) -> bool:
        """Whether pods may have to be evicted, or were to be. In most clusters no device has such a taint."""
        return bool(self._waiting or self._evicted or self._affected.has_evicting_taints)

    def _pod_added(self, pod: Pod) -> None:
        if self._may_evict and _has_claims(pod):
            self._add_pods((pod,))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if self._may_evict and _has_claims(new) and _situation(old) != _situation(new):
            self._add_pods((new,))

    def _pod_deleted(self, pod: Pod) -> None:
        self._pod_added(pod)

    def _claim_changed(self, claim: ResourceClaim) -> None:
        if claim.status.allocation is not None and self._may_evict:
            self._add_pods(self._affected.consumers(claim))

    def _claim_updated(self, old: ResourceClaim, new: ResourceClaim) -> None:
        if self._may_evict and (old.status.allocation, old.status.reserved_for) != (
            new.status.allocation,
            new.status.reserved_for,
        ):
            self._claim_changed(old)
            self._claim_changed(new)

    def _slice_changed(self, slice_: ResourceSlice) -> None:
        """One key for all slices of a pool: there may be many, and each affects the pods of all."""
        if self._affected.has_taints(slice_):
            sweep = PoolSweep(slice_.spec.driver, slice_.spec.pool.name)
            self._tainted_before.setdefault(sweep, set()).update(tainted_devices(slice_))
            self.queue.add(sweep)

    def _slice_updated(self, old: ResourceSlice, new: ResourceSlice) -> None:
        if old.spec != new.spec:
            self._slice_changed(old)
            self._slice_changed(new)

    def _rule_changed(self, rule: DeviceTaintRule) -> None:
        """The rule is queued first, so that its status shows pending evictions before they happen."""
        self.queue.add(rule_ref(rule))
        self._add_evicted_by(rule)

    def _rule_updated(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        if old.spec != new.spec:
            self._rule_changed(new)
            self._add_evicted_by(old)

    def _rule_deleted(self, rule: DeviceTaintRule) -> None:
        self._rule_changed(rule)

    def _add_evicted_by(self, rule: DeviceTaintRule) -> None:
        if rule.spec.taint.effect == NO_EXECUTE:
            self._sweeps += 1
            sweep = RuleSweep(self._sweeps)
            self._rule_sweeps[sweep] = rule
            self.queue.add(sweep)

    def _add_pods(self, pods: Iterable[Pod]) -> None:
        """Queue pods that may have to be evicted, or that may no longer have to be."""
        may_evict = self._affected.has_evicting_taints
        for pod in pods:
            ref = pod_ref(pod)
            if may_evict or ref in self._waiting or ref in self._evicted:
                self.queue.add(ref)

    # --- reconciling pods ---

    async def reconcile(self, key: PodRef | RuleRef | RuleSweep | PoolSweep) -> None:
        match key:
            case RuleSweep():
                rule = self._rule_sweeps[key]
                await self._add_in_steps(self._affected.finding_pods_of(rule))
                del self._rule_sweeps[key]
            case PoolSweep(driver, pool):
                before = self._tainted_before.pop(key, set())
                await self._add_in_steps(self._affected.finding_pods_of_pool(driver, pool, before))
            case PodRef():
                await self._reconcile_pod(key)
            case RuleRef():
                await self._reconcile_rule(key)

    async def _add_in_steps(self, steps: Steps[list[Pod]]) -> None:
        async for pod in with_pauses(await finish_with_pauses(steps)):
            self.queue.add(pod_ref(pod))

    async def _reconcile_pod(self, ref: PodRef) -> None:
        pod = self._pods.get(ref.key)
        if pod is None or pod_ref(pod) != ref or is_deleting(pod):
            self._evicted.discard(ref)
            self._end_waiting(ref)
            return
        eviction = self._affected.eviction_of(pod)
        if eviction is None:
            if self._end_waiting(ref):
                self._record_event(pod, "Cancelling deletion")
            return
        if ref in self._evicted:
            return
        wait = (eviction.at - self.clock.today()).total_seconds()
        if wait > 0:
            self._waiting[ref] = eviction
            self._update_later(eviction.rules)
            self.queue.add_after(ref, wait)
            return
        await self._evict(pod, eviction)

    async def _evict(self, pod: Pod, eviction: Eviction) -> None:
        ref = pod_ref(pod)
        log.info("evicting pod %s from its devices", ref.key)
        self._record_event(pod, "Marking for deletion")
        if await disrupt(self.client, pod, WHY):
            late = (self.clock.today() - eviction.at).total_seconds()
            self._metrics.deleted(late)
            self._evicted_by.update(rule.uid for rule in eviction.rules)
        known = self._pods.get(ref.key)
        if known is not None and pod_ref(known) == ref and not is_deleting(known):
            self._evicted.add(ref)
        self._waiting.pop(ref, None)
        self._update_later(eviction.rules)

    def _end_waiting(self, ref: PodRef) -> bool:
        """Whether an eviction was pending."""
        eviction = self._waiting.pop(ref, None)
        if eviction is None:
            return False
        self._update_later(eviction.rules)
        return True

    def _update_later(self, rules: Iterable[RuleRef]) -> None:
        """More evictions may follow: debounce status updates."""
        for rule in rules:
            self.queue.add_after(rule, UPDATE_SECONDS)

    def _record_event(self, pod: Pod, note: str) -> None:
        self._recorder.event(reference_to(PODS, pod), NORMAL, REASON, ACTION, note)

    # --- reconciling rules ---

    async def _reconcile_rule(self, ref: RuleRef) -> None:
        key = ObjectKey("", ref.name)
        rule = self._rules.get(key) if self._rules is not None else None
        if rule is None or rule_ref(rule) != ref:
            self._evicted_by.pop(ref.uid, None)
            return
        wait = self._wait_seconds(rule)
        if wait == 0:
            wait = await self._write(rule, await self._reach(rule))
        if wait is not None and wait > 0:
            self.queue.add_after(ref, wait)

    def _wait_seconds(self, rule: DeviceTaintRule) -> float | None:
        """How long to wait before the rule's condition is written; None if it is final."""
        return None if is_final(rule) else seconds_until_update(rule, self.clock.today())

    async def _reach(self, rule: DeviceTaintRule) -> Reach:
        effect = rule.spec.taint.effect
        if effect not in (NO_EXECUTE, NO_EFFECT):
            return Reach()
        counts = effect == NO_EFFECT
        steps = self._affected.measuring_reach_of(rule, count_devices=counts)
        return await finish_with_pauses(steps)

    async def _write(self, rule: DeviceTaintRule, reach: Reach) -> float | None:
        """Write the condition. If it was written meanwhile: how long to wait before the next write."""
        wait: float | None = None

        def change(found: RawObject) -> RawObject:
            nonlocal wait
            current = DEVICE_TAINT_RULES.codec.decode(found.to_json())
            if rule_ref(current) != rule_ref(rule) or current.spec != rule.spec:
                return found  # the informer delivers the change
            wait = self._wait_seconds(current)
            if wait != 0:
                return found
            evicted = self._evicted_by[rule.metadata.uid]
            update = eviction_condition(current, reach, evicted)
            return found if update is None else with_condition(found, update, self.clock.today())

        try:
            await self.client.update_with_retry(
                _RAW_RULES, ObjectKey("", rule.metadata.name), change, subresource="status"
            )
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
        return wait


def _has_claims(pod: Pod) -> bool:
    return bool(
        pod.get("spec", "resourceClaims") or pod.get("status", "extendedResourceClaimStatus")
    )


def _situation(pod: Pod) -> tuple[object, ...]:
    """The fields of a pod that affect its eviction."""
    return (
        pod.node_name,
        is_deleting(pod),
        pod.is_finished,
        pod.get("status", "resourceClaimStatuses"),
        pod.get("status", "extendedResourceClaimStatus"),
    )
