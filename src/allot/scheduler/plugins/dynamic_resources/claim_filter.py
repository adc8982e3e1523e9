"""The claim filter: on which nodes a pod's claims can be allocated. The part of DynamicResources without side effects."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
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
    has_alternatives,
    prioritized_list_score,
    replay,
)
from allot.allocation.errors import AllocationError
from allot.api.claims import ResourceClaim
from allot.api.decoding import to_builtin
from allot.api.identities import DeviceId
from allot.deadline import DeadlineExceededError
from allot.features import FeatureGates
from allot.rules import (
    ALTERNATIVES_ON_ALL_NODES,
    MIN_MAX_SCORES,
    READY_DEVICES_FIRST,
    RELEASE_WAITING_PODS_WHEN_OFF,
)
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    NodesByName,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    SlowFilterPlugin,
)
from allot.scheduler.framework.status import SKIP, SUCCESS, Status, failed, pending, unresolvable
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
    ExportedAllocations,
    NodeAllocation,
    PodDevices,
    is_usable_on,
    problem_with,
    status_of,
    unknown_class_names,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claims_of,
)
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    PodExtension,
    Variant,
)
from allot.scheduler.plugins.dynamic_resources.scores import normalized_scores, raw_score
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

NAME: Final = "DynamicResources"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
NO_STEP_LIMIT: Final = StepBudget(NO_LIMIT)
_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)

FindExtension = Callable[[PodInfo], PodExtension | None]
"""What a pod needs for its extended resources; None if devices have nothing to do with them."""


def no_extended_resources(_pod: PodInfo) -> None:
    """Extended resources are not for devices to serve."""


def never_unusable(_claim: ResourceClaim) -> str:
    """No device must be made ready."""
    return ""


def no_avoided_devices(_pod: PodInfo) -> frozenset[DeviceId]:
    """No device has failed for the pod."""
    return frozenset()


def why_unusable_without_gate(gates: FeatureGates) -> Callable[[ResourceClaim], str]:
    """How claims with binding conditions are treated where pods may not wait for them (KEP-5007)."""
    if RELEASE_WAITING_PODS_WHEN_OFF in gates:
        return why_not_usable_when_off
    return never_unusable


class ClaimFilter(ClaimQueueing, PreFilterPlugin, SlowFilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters and scores nodes by the allocations that a pod's claims would get there."""

    name: ClassVar[str] = NAME
    filters_locally: ClassVar[bool] = False
    scores_locally: ClassVar[bool] = False

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
        """`why_unusable` says why the devices of an allocated claim will not become ready any more, if so.

        `avoided_devices` are the devices that a pod shall not get now. `monotonic` is the clock by which nodes that took too long are tried again.
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
        """How often devices were searched for."""

    # --- filter ---

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        extension = self._find_extension(pod)
        if not pod.claims and extension is None:
            return PRE_FILTER_SKIP
        claims = claims_of(pod, self._tracker.get)
        if isinstance(claims, Unusable):
            return PreFilterResult(unresolvable(claims.reason))
        to_allocate = []
        for claim in claims:
            if claim.status.allocation is not None:
                continue
            if self._tracker.has_pending_allocation(claim.metadata.uid):
                key = str(claim.key)
                return PreFilterResult(
                    pending(f"resource claim {key} is in the process of being allocated")
                )
            problem = problem_with(claim, self._devices.classes, self._gates)
            if problem:
                return PreFilterResult(unresolvable(problem))
            to_allocate.append(claim)
        prefers = has_alternatives(to_allocate)
        # KEP-4816: the results from all nodes are ranked. KEP-5007: so is readiness.
        state.ranks_all_nodes |= prefers and ALTERNATIVES_ON_ALL_NODES in self._gates
        state.ranks_all_nodes |= self._ranks_readiness and bool(to_allocate or extension)
        avoided = self._avoided_devices(pod)
        state[NAME] = PodDevices(
            claims,
            to_allocate,
            *self._known_for(to_allocate, extension, avoided),
            prefers,
            extension,
            avoided,
        )
        return PRE_FILTER_SUCCESS if claims or extension is not None else PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        devices: PodDevices = state[NAME]
        target = self._devices.target(node)
        to_allocate = devices.to_allocate
        if devices.extension is not None:
            variant = devices.extension.variant_on(node)
            if isinstance(variant, str):
                return unresolvable(variant)
            if variant is not None:
                to_allocate = [*to_allocate, variant.claim]
        unavailable: set[int] = set()
        for index, claim in enumerate(devices.claims):
            allocation = claim.status.allocation
            if allocation is None:
                continue
            try:
                usable = is_usable_on(allocation, target)
            except AllocationError as error:
                return failed(error)
            if not usable or self._why_unusable(claim):
                unavailable.add(index)
        if to_allocate:
            answer = self._allocation_on(devices, to_allocate, target, state.time)
            if not answer.status.is_success:
                return answer.status
        devices.unavailable |= unavailable
        return unresolvable(NOT_AVAILABLE) if unavailable else SUCCESS

    def allocate_on(
        self,
        claims: Sequence[ResourceClaim],
        target: TargetNode,
        time: DecisionTime = UNLIMITED,
        avoided: frozenset[DeviceId] = frozenset(),
    ) -> NodeAllocation:
        """What these claims, none of them allocated, would get on a node now.

        A node that takes too long is passed over, or the decision interrupted (`DeadlineExceededError`), as `time` says.
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
        """What the pod's claims would get on a node: as it was found out before, if that still holds."""
        last_change = self._devices.last_change(target.name)
        answer = devices.known.get(target, last_change)
        if answer is not None and not with_results:
            return answer
        if answer is not None and (answer.results or not answer.status.is_success):
            return with_own_shares(answer, self._new_share_id)
        if devices.extension is not None and devices.extension.left_over:
            return self.allocate_on(claims, target, time, devices.avoided)
        node_class = self._node_equivalence_class(devices, target)
        if node_class is not None and not with_results:
            answer = devices.known.get_by_node_class(node_class)
        if answer is None or with_results:
            answer = self.allocate_on(claims, target, time, devices.avoided)
            if answer.timed_out and not time.caches_timeouts:
                return answer
            if node_class is not None:
                devices.known.put_by_node_class(node_class, answer)
        devices.known.put(target, last_change, answer)
        time.result_cached()
        return answer

    # --- decisions in another process ---

    @property
    def node_seconds(self) -> float:
        return self._args.filter_timeout_seconds

    def export_results(
        self, state: CycleState, node: NodeInfo | None
    ) -> ExportedAllocations | None:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return None
        wanted = self._wanted(devices, node) if node is not None else ()
        if node is not None and wanted:
            target = self._devices.target(node)
            self._allocation_on(devices, wanted, target, state.time, with_results=True)
        return ExportedAllocations(devices.key, tuple(devices.known.entries()))

    def import_results(
        self,
        exported: ExportedAllocations,
        pod: PodInfo,
        nodes: NodesByName,
        *,
        with_timeouts: bool,
    ) -> None:
        known = self._answers.for_claims(exported.key)
        for last_change, target, answer in exported.entries:
            node = nodes(target.name)
            if node is None or node.facts is None or (answer.timed_out and not with_timeouts):
                continue
            current, newest = self._devices.target(node), self._devices.last_change(target.name)
            if current != target:
                continue
            # Whether a node takes too long hardly depends on single devices that come and go.
            if answer.timed_out or newest == last_change:
                known.put(current, newest, answer)
            elif not answer.status.is_success:
                known.put_stale(current, newest, answer)
            elif (still := self._still_possible(pod, current, answer)) is not None:
                known.put(current, newest, still)
        if with_timeouts:
            known.note_timeouts(exported.timeouts, self._monotonic())

    def forget_stale(self, exported: ExportedAllocations) -> None:
        self._answers.for_claims(exported.key).forget_stale()

    def _still_possible(
        self, pod: PodInfo, target: TargetNode, answer: NodeAllocation
    ) -> NodeAllocation | None:
        """The same devices, if the pod's claims can have them on the node as it is now."""
        claims = claims_of(pod, self._tracker.get)
        if isinstance(claims, Unusable):
            return None
        wanted = [claim for claim in claims if claim.status.allocation is None]
        if not answer.results or len(wanted) != len(answer.results):
            return None
        results = replay(
            self.problem_for(wanted, target, self._avoided_devices(pod)),
            answer.results,
            self._new_share_id,
        )
        return answer._replace(results=results) if results is not None else None

    def retry_timeouts(self, state: CycleState) -> int:
        devices: PodDevices | None = state.get(NAME)
        return devices.known.forget_timeouts() if devices is not None else 0

    def drivers_on(self, node: str) -> frozenset[str]:
        """The drivers with devices on a node, by which nodes can be told apart at a glance."""
        return self._devices.drivers_on(node)

    def last_change(self, node: str) -> int:
        """A number that is another one whenever a node sees other devices, or other free ones."""
        return self._devices.last_change(node)

    def node_equivalence_class(self, state: CycleState, node: NodeInfo) -> Hashable | None:
        """Equal for nodes on which the pod's claims get the same; None if nothing can be said."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return None
        return self._node_equivalence_class(devices, self._devices.target(node))

    def wanted(self, state: CycleState) -> tuple[Hashable, tuple[str, ...]] | None:
        """What is to be allocated for a pod, equal for all that ask for the same; and what its claims are called."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or not devices.key:
            return None
        names = (str(claim.key) for claim in devices.to_allocate)
        return devices.key, tuple(names)

    def _node_equivalence_class(self, devices: PodDevices, target: TargetNode) -> Hashable | None:
        if devices.extension is not None or devices.avoided:
            return None  # what a node serves by itself is left to it; devices that are avoided have names
        return self._devices.node_equivalence_class(target, self._tracker.ledger)

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        """Claims that ask for the same get the same; those that are allocated already are special."""
        devices: PodDevices = state[NAME]
        if devices.extension is not None and devices.extension.left_over:
            return None
        if len(devices.claims) != len(devices.to_allocate):
            return None
        return devices.key, devices.known.retries

    def _known_for(
        self,
        claims: Sequence[ResourceClaim],
        extension: PodExtension | None,
        avoided: frozenset[DeviceId],
    ) -> tuple[tuple[Hashable, ...], NodeAllocations]:
        """What such claims ask for, and what is known about claims that do."""
        key: tuple[Hashable, ...] = tuple(_encoder.encode(claim.spec) for claim in claims)
        if extension is not None:
            key = (*key, extension.wanted.key)
        if avoided:
            key = (*key, avoided)
        known = self._answers.for_claims(key)
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

    def allocation_problem(self, state: CycleState, node: NodeInfo) -> AllocationProblem | None:
        """What must be solved for a pod to run on a node; None if all its devices are decided on already."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return None
        wanted = self._wanted(devices, node)
        if not wanted:
            return None
        return self.problem_for(wanted, self._devices.target(node), devices.avoided)

    @property
    def class_names(self) -> Iterable[str]:
        """The device classes that there are."""
        return self._devices.classes

    def unknown_class_names(self, pod: PodInfo) -> tuple[str, ...]:
        """The device classes that claims of a pod ask for, and that do not exist."""
        claims = claims_of(pod, self._tracker.get)
        if isinstance(claims, Unusable):
            return ()
        return unknown_class_names(claims, self._devices.classes)

    def has_alternatives(self, state: CycleState) -> bool:
        """Whether claims that are to be allocated for the pod have prioritized alternatives."""
        devices: PodDevices | None = state.get(NAME)
        return devices is not None and devices.has_alternatives

    def unusable_claims(self, state: CycleState, node: NodeInfo) -> list[tuple[ResourceClaim, str]]:
        """Claims whose devices the node cannot use, or that have failed, with the failure."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or node.facts is None:
            return []
        target = self._devices.target(node)
        found = []
        for claim in devices.claims:
            allocation = claim.status.allocation
            if allocation is None:
                continue
            hopeless = self._why_unusable(claim)
            if hopeless or not is_usable_on(allocation, target):
                found.append((claim, hopeless))
        return found

    def _wanted(self, devices: PodDevices, node: NodeInfo) -> list[ResourceClaim]:
        """The claims to allocate on a node, with the one behind extended resources."""
        wanted = list(devices.to_allocate)
        variant = devices.extension.variant_on(node) if devices.extension is not None else None
        if isinstance(variant, Variant):
            wanted.append(variant.claim)
        return wanted

    # --- score ---

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return SKIP
        return SUCCESS if devices.has_alternatives or self._ranks_readiness else SKIP

    @property
    def _ranks_readiness(self) -> bool:
        """Whether nodes can differ in whether devices must be made ready, and that counts."""
        is_on = READY_DEVICES_FIRST in self._gates and self._args.prefers_ready_devices
        return is_on and self._devices.has_binding_conditions

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The score of the alternatives and, in the lowest bit, whether no device must be made ready."""
        devices: PodDevices = state[NAME]
        wanted = self._wanted(devices, node)
        if not wanted:
            return raw_score(0, is_ready=True)
        answer = self._allocation_on(devices, wanted, self._devices.target(node), state.time)
        return raw_score(answer.score, is_ready=answer.is_ready)

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scores[:] = normalized_scores(
            scores, ranks_readiness=self._ranks_readiness, min_max=MIN_MAX_SCORES in self._gates
        )
