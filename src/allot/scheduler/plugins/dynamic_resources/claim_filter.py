"""The claim filter: on which nodes a pod's claims can be allocated. The part of DynamicResources without side effects."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from allot.allocation import has_alternatives
from allot.allocation.errors import AllocationError
from allot.rules import ALTERNATIVES_ON_ALL_NODES, MIN_MAX_SCORES, READY_DEVICES_FIRST
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from allot.scheduler.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    failed,
    pending,
    unresolvable,
)
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.claim_queries import ClaimQueries
from allot.scheduler.plugins.dynamic_resources.claim_result_exchange import ClaimResultExchange
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    PodDevices,
    is_usable_on,
    problem_with,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import Unusable, claims_of
from allot.scheduler.plugins.dynamic_resources.scores import normalized_scores, raw_score
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

NOT_AVAILABLE: Final = "resourceclaim not available on the node"


class ClaimFilter(ClaimQueries, ClaimResultExchange, PreFilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters and scores nodes by the allocations that a pod's claims would get there."""

    filters_locally: ClassVar[bool] = False
    scores_locally: ClassVar[bool] = False
    normalizes_by_value: ClassVar[bool] = True

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
        if prefers and ALTERNATIVES_ON_ALL_NODES in self._gates:
            state.ranks_all_nodes = True
        if self._ranks_readiness and (to_allocate or extension is not None):
            state.ranks_all_nodes = True
        avoided = self._avoided_devices(pod)
        state[NAME] = devices = PodDevices(
            claims,
            to_allocate,
            *self._known_for(to_allocate, extension, avoided),
            prefers,
            extension,
            avoided,
        )
        self._on_usable_claims(pod, devices)
        return PRE_FILTER_SUCCESS if claims or extension is not None else PRE_FILTER_SKIP

    def _on_usable_claims(self, pod: PodInfo, devices: PodDevices) -> None:
        """The pod's claims can be allocated, or are, as far as nodes do not matter."""

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
            if answer.status.code is not Code.SUCCESS:
                return answer.status
        devices.unavailable |= unavailable
        return unresolvable(NOT_AVAILABLE) if unavailable else SUCCESS

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        """Claims with equal specs get equal results. None if some claims are allocated already."""
        devices: PodDevices = state[NAME]
        if devices.extension is not None and devices.extension.left_over:
            return None
        if len(devices.claims) != len(devices.to_allocate):
            return None
        return devices.key, devices.known.retries

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
        """Whether nodes are ranked by whether their devices have binding conditions."""
        if not self._devices.has_binding_conditions:
            return False
        return READY_DEVICES_FIRST in self._gates and self._args.prefers_ready_devices

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The score of the alternatives and, in the lowest bit, whether no device has binding conditions."""
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
