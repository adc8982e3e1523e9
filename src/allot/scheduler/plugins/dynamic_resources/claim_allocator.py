"""The allocations that a pod's claims would get on a node, cached until the devices there change."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Final
from uuid import uuid4

import msgspec

from allot.allocation import (
    Abandoned,
    Allocated,
    AllocationProblem,
    Limit,
    StepBudget,
    TargetNode,
    allocate,
    prioritized_list_score,
)
from allot.api.claims import ResourceClaim
from allot.api.decoding import to_builtin
from allot.api.identities import DeviceId
from allot.deadline import DeadlineExceededError
from allot.features import FeatureGates
from allot.rules import RELEASE_WAITING_PODS_WHEN_OFF
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.status import SUCCESS
from allot.scheduler.plugins.dynamic_resources.allocation_cache import (
    AllocationCache,
    NodeAllocations,
    with_own_shares,
)
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    waits_for_binding,
    why_not_usable_when_off,
)
from allot.scheduler.plugins.dynamic_resources.claim_queueing import ClaimQueueing
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    NO_LIMIT,
    DynamicResourcesArgs,
    NodeAllocation,
    PodDevices,
    status_of,
)
from allot.scheduler.plugins.dynamic_resources.pod_extension import PodExtension, Variant
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

NAME: Final = "DynamicResources"
NO_STEP_LIMIT: Final = StepBudget(NO_LIMIT)
_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)

FindExtension = Callable[[PodInfo], PodExtension | None]
"""What a pod needs for its extended resources; None if no device class serves them."""


def no_extended_resources(_pod: PodInfo) -> None:
    """No extended resource is served by devices."""


def never_unusable(_claim: ResourceClaim) -> str:
    """No device has binding conditions."""
    return ""


def no_avoided_devices(_pod: PodInfo) -> frozenset[DeviceId]:
    """No device has failed for the pod."""
    return frozenset()


def why_unusable_without_gate(gates: FeatureGates) -> Callable[[ResourceClaim], str]:
    """Why allocated claims with binding conditions are unusable while the feature is off (KEP-5007)."""
    if RELEASE_WAITING_PODS_WHEN_OFF in gates:
        return why_not_usable_when_off
    return never_unusable


class ClaimAllocator(ClaimQueueing):
    """Asks the allocator about claims and nodes, once per equivalence class. Nothing is written."""

    name: ClassVar[str] = NAME

    def __init__(
        self,
        tracker: ClaimTracker,
        devices: DeviceState,
        args: DynamicResourcesArgs = DynamicResourcesArgs(),  # noqa: B008 - immutable
        new_share_id: Callable[[], str] = lambda: str(uuid4()),
        *,
        find_extension: FindExtension = no_extended_resources,
        why_unusable: Callable[[ResourceClaim], str] = never_unusable,
        avoided_devices: Callable[[PodInfo], frozenset[DeviceId]] = no_avoided_devices,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`why_unusable` says why the devices of an allocated claim cannot become ready; "" if they can.

        `avoided_devices` are the devices that a pod must not get now. Nodes that timed out are retried by `monotonic`.
        """
        self._tracker = tracker
        self._devices = devices
        self._args = args
        self._new_share_id = new_share_id
        self._gates = devices.gates
        self._find_extension = find_extension
        self._why_unusable = why_unusable
        self._avoided_devices = avoided_devices
        self._monotonic = monotonic
        self._answers = AllocationCache()
        self.allocations = 0
        """How often the allocator ran; tests count it."""

    def allocate_on(
        self,
        claims: Sequence[ResourceClaim],
        target: TargetNode,
        time: DecisionTime = UNLIMITED,
        avoided: frozenset[DeviceId] = frozenset(),
    ) -> NodeAllocation:
        """What these claims, none of them allocated, would get on a node now.

        When the time is over, the node is skipped or `DeadlineExceededError` raised, as `time` says.
        """
        self.allocations += 1
        time.begin_node()
        problem = self.problem_for(claims, target, avoided)
        budget = NO_STEP_LIMIT if time.is_limited else self._args.budget
        outcome = allocate(problem, budget, self._new_share_id, deadline=time.check)
        if isinstance(outcome, Allocated):
            score = prioritized_list_score(claims, outcome.results)
            is_ready = not any(map(waits_for_binding, outcome.results))
            return NodeAllocation(SUCCESS, outcome.results, score, outcome.skipped, is_ready)
        if (
            isinstance(outcome, Abandoned)
            and outcome.limit is Limit.TIME
            and not time.skips_slow_nodes
        ):
            time.devices_prepared(outcome.kept)
            raise DeadlineExceededError
        return NodeAllocation(status_of(outcome, self._gates))

    def _allocation_on(
        self,
        devices: PodDevices,
        claims: Sequence[ResourceClaim],
        target: TargetNode,
        time: DecisionTime,
        *,
        with_results: bool = False,
    ) -> NodeAllocation:
        """What the pod's claims would get on a node, from the cache if the node's devices are unchanged."""
        last_change = self._devices.last_change(target.name)
        answer = devices.known.get(target, last_change)
        if answer is not None and not with_results:
            return answer
        if answer is not None and (answer.results or not answer.status.is_success):
            return with_own_shares(answer, self._new_share_id)
        if devices.extension is not None and devices.extension.left_over:
            return self.allocate_on(claims, target, time, devices.avoided)
        node_class = self._node_equivalence_class(devices, target)
        known = devices.known.get_by_node_class(node_class) if node_class is not None else None
        if known is not None and with_results:
            # It is taken, so it will not be asked for.
            pools = self._devices.pools_of(target.name)
            return known.on_node(target.name, pools, self._new_share_id)
        if known is not None:
            answer = known.without_results
        else:
            answer = self.allocate_on(claims, target, time, devices.avoided)
            if answer.timed_out and not time.caches_timeouts:
                return answer
            if node_class is not None:
                pools = self._devices.pools_of(target.name)
                devices.known.put_by_node_class(node_class, target.name, pools, answer)
        devices.known.put(target, last_change, answer)
        time.result_cached()
        return answer

    def _known_for(
        self,
        claims: Sequence[ResourceClaim],
        extension: PodExtension | None,
        avoided: frozenset[DeviceId],
    ) -> tuple[tuple[Hashable, ...], NodeAllocations]:
        """The equivalence key of these claims, and the cached results for it."""
        key: tuple[Hashable, ...] = tuple([_encoder.encode(claim.spec) for claim in claims])
        if extension is not None:
            key = (*key, extension.wanted.key)
        if avoided:
            key = (*key, avoided)
        known = self._answers.for_claims(key)
        if known.has_timeouts:
            known.retry_timeouts(self._monotonic())
        return key, known

    def problem_for(
        self,
        claims: Sequence[ResourceClaim],
        target: TargetNode,
        avoided: frozenset[DeviceId] = frozenset(),
    ) -> AllocationProblem:
        return AllocationProblem(
            node=target,
            claims=claims,
            classes=self._devices.classes,
            inventory=self._devices.inventory,
            ledger=self._tracker.ledger,
            avoided=avoided,
        )

    def _wanted(self, devices: PodDevices, node: NodeInfo) -> list[ResourceClaim]:
        """The claims to allocate on a node, with the one for extended resources."""
        wanted = list(devices.to_allocate)
        variant = devices.extension.variant_on(node) if devices.extension is not None else None
        if isinstance(variant, Variant):
            wanted.append(variant.claim)
        return wanted

    def _node_equivalence_class(self, devices: PodDevices, target: TargetNode) -> Hashable | None:
        if devices.extension is not None or devices.avoided:
            return None  # depends on the node's own resources, or on single devices
        return self._devices.node_equivalence_class(target, self._tracker.ledger)
