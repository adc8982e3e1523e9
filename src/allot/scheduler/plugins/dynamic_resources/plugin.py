"""The extension points of DynamicResources."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import uuid4

import msgspec

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Explanation,
    TargetNode,
    allocate,
    explain,
)
from allot.allocation.errors import AllocationError
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.decoding import to_builtin
from allot.api.identities import ObjectKey
from allot.client.errors import ClientError
from allot.scheduler.framework import events
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import Action, ClusterEvent, EventRegistration, Hint
from allot.scheduler.framework.plugins import (
    GO_ON,
    NOTHING_TO_FILTER,
    FilterPlugin,
    PostFilterAnswer,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterAnswer,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from allot.scheduler.framework.status import (
    SKIP,
    SUCCESS,
    Status,
    failed,
    unresolvable,
    unschedulable,
)
from allot.scheduler.plugins.dynamic_resources import scoring
from allot.scheduler.plugins.dynamic_resources.answers import (
    DynamicResourcesArgs,
    NodeAnswer,
    PodDevices,
    is_usable_on,
    problem_with,
    status_of,
)
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.claim_writes import (
    ClaimChangedError,
    ClaimWriter,
    with_finalizer,
)
from allot.scheduler.plugins.dynamic_resources.device_state import DeviceState
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claim_hint,
    claims_of,
    is_reserved_for,
    pod_hint,
)
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    PodExtension,
    Variant,
    pod_behind,
)
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

log = logging.getLogger(__name__)

NAME: Final = "DynamicResources"
MAX_REMEMBERED: Final = 100
"""How many different sets of claims answers are remembered for."""
_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
DELETED: Final = "deletion of ResourceClaim completed"


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Allocates the claims of pods."""

    name: ClassVar[str] = NAME
    filters_locally: ClassVar[bool] = False
    scores_locally: ClassVar[bool] = False

    def __init__(
        self,
        tracker: ClaimTracker,
        devices: DeviceState,
        writer: ClaimWriter,
        nodes: Callable[[str], NodeInfo | None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        clock: Callable[[], datetime],
        args: DynamicResourcesArgs = DynamicResourcesArgs(),  # noqa: B008 - immutable
        new_share_id: Callable[[], str] = lambda: str(uuid4()),
        extended: ExtendedClaims | None = None,
        gate: BindingGate | None = None,
    ) -> None:
        """`extended` serves extended resources with devices; None if that is off.

        `gate` holds pods back until their devices are ready; None if that is off.
        """
        self._tracker = tracker
        self._devices = devices
        self._writer = writer
        self._nodes = nodes
        self._spawn = spawn
        self._clock = clock
        self._args = args
        self._budget = args.budget
        self._new_share_id = new_share_id
        self._gates = devices.gates
        self._extended = extended
        self._gate = gate
        self._scores: dict[tuple[Hashable, ...], dict[str, int]] = {}
        self._dropped: dict[str, asyncio.Event] = {}
        """Pods whose reservations are being taken back, by uid."""
        self.allocations = 0
        """How often devices were searched for."""

    # --- the queue ---

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.claims:
            return SUCCESS
        claims = claims_of(pod, self._tracker.get)
        return unresolvable(claims.reason) if isinstance(claims, Unusable) else SUCCESS

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        changes = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(events.NODE, node)),
            EventRegistration(
                ClusterEvent(events.RESOURCE_CLAIM, changes | Action.DELETE), self._claim_hint
            ),
            EventRegistration(
                ClusterEvent(events.WAITING_POD, Action.UPDATE_POD_CLAIM_STATUSES), self._pod_hint
            ),
            EventRegistration(ClusterEvent(events.DEVICE_CLASS, changes)),
            EventRegistration(ClusterEvent(events.RESOURCE_SLICE, changes)),
        )

    def _claim_hint(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if new is None and old is not None and pod_behind(old) == pod.uid:
            return Hint.QUEUE  # what an earlier attempt left over stands in the way no longer
        return claim_hint(pod, old, new, self._tracker.get)

    def _pod_hint(self, pod: PodInfo, _old: Any, _new: Any) -> Hint:
        return pod_hint(pod, self._tracker.get)

    # --- filter ---

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterAnswer:
        extension = self._extended.look_at(pod) if self._extended is not None else None
        if not pod.claims and extension is None:
            return NOTHING_TO_FILTER
        claims = claims_of(pod, self._tracker.get)
        if isinstance(claims, Unusable):
            return PreFilterAnswer(unresolvable(claims.reason))
        to_allocate = []
        for claim in claims:
            if claim.status.allocation is not None:
                continue
            if self._tracker.is_in_flight(claim.metadata.uid):
                key = f"{claim.metadata.namespace}/{claim.metadata.name}"
                return PreFilterAnswer(
                    unresolvable(f"resource claim {key} is in the process of being allocated")
                )
            problem = problem_with(claim, self._devices.classes, self._gates)
            if problem:
                return PreFilterAnswer(unresolvable(problem))
            to_allocate.append(claim)
        state[NAME] = PodDevices(
            claims,
            to_allocate,
            *self._scores_for(to_allocate, extension),
            scoring.has_alternatives(to_allocate),
            extension,
        )
        return GO_ON if claims or extension is not None else NOTHING_TO_FILTER

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
            if usable and self._gate is not None:
                usable = not self._gate.is_hopeless(claim)
            if not usable:
                unavailable.add(index)
        if to_allocate:
            answer = self.answer_for(to_allocate, target)
            devices.answers[node.name] = answer
            devices.scores[node.name] = answer.score
            if not answer.status.is_success:
                return answer.status
        devices.unavailable |= unavailable
        return unresolvable(NOT_AVAILABLE) if unavailable else SUCCESS

    def answer_for(self, claims: Sequence[ResourceClaim], target: TargetNode) -> NodeAnswer:
        """What these claims, none of them allocated, would get on a node now."""
        self.allocations += 1
        outcome = allocate(self.problem_for(claims, target), self._budget, self._new_share_id)
        if isinstance(outcome, Allocated):
            score = scoring.preference_score(claims, outcome.results)
            return NodeAnswer(SUCCESS, outcome.results, score)
        return NodeAnswer(status_of(outcome))

    def rests_on(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        """Claims that ask for the same get the same; those that are allocated already are special."""
        devices: PodDevices = state[NAME]
        if devices.extension is not None and devices.extension.left_over:
            return None
        return devices.key if len(devices.claims) == len(devices.to_allocate) else None

    def _scores_for(
        self, claims: Sequence[ResourceClaim], extension: PodExtension | None
    ) -> tuple[tuple[Hashable, ...], dict[str, int]]:
        """What such claims ask for, and where their scores are kept. Those not used lately are dropped."""
        key: tuple[Hashable, ...] = tuple(_encoder.encode(claim.spec) for claim in claims)
        if extension is not None:
            key = (*key, extension.wanted.key)
        found = self._scores.pop(key, None)
        self._scores[key] = found = {} if found is None else found
        if len(self._scores) > MAX_REMEMBERED:
            del self._scores[next(iter(self._scores))]
        return key, found

    def problem_for(self, claims: Sequence[ResourceClaim], target: TargetNode) -> AllocationProblem:
        return AllocationProblem(
            node=target,
            claims=claims,
            classes=self._devices.classes,
            inventory=self._devices.inventory,
            ledger=self._tracker.ledger,
        )

    # --- when nothing fits ---

    def explain(self, state: CycleState, node: NodeInfo) -> Explanation | None:
        """Why the pod's claims do not fit on a node; None if that is not what is wrong with it."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None or not devices.to_allocate or node.facts is None:
            return None
        return explain(self.problem_for(devices.to_allocate, self._devices.target(node)))

    async def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> PostFilterAnswer:
        """Give back a claim that ties the pod to nodes where it cannot run, if nobody else uses it."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return PostFilterAnswer(unschedulable())
        if devices.extension is not None and devices.extension.left_over:
            return await self._remove_left_over(devices.extension)
        for index in sorted(devices.unavailable):
            claim = devices.claims[index]
            if any(consumer.uid != pod.uid for consumer in claim.status.reserved_for):
                continue
            try:
                self._tracker.assume(await self._writer.deallocate(claim))
            except ClientError as error:
                return PostFilterAnswer(failed(error))
            return PostFilterAnswer(unschedulable(DEALLOCATED))
        return PostFilterAnswer(unschedulable())

    async def _remove_left_over(self, extension: PodExtension) -> PostFilterAnswer:
        assert self._extended is not None
        try:
            await self._extended.remove_left_over(extension)
        except (ClaimChangedError, ClientError) as error:
            return PostFilterAnswer(failed(error))
        return PostFilterAnswer(unschedulable(DELETED))

    # --- score ---

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        devices: PodDevices | None = state.get(NAME)
        return SUCCESS if devices is not None and devices.has_alternatives else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        devices: PodDevices = state[NAME]
        score = devices.scores.get(node.name)
        if score is None:  # forgotten, because nobody asked for such claims for a while
            answer = self.answer_for(devices.to_allocate, self._devices.target(node))
            score = devices.scores[node.name] = answer.score
        return score

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scoring.normalize(scores)

    # --- reserve ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return SUCCESS
        node = self._nodes(node_name)
        extension = devices.extension
        variant = extension.variant_on(node) if extension is not None and node is not None else None
        wanted = list(devices.to_allocate)
        if isinstance(variant, Variant):
            wanted.append(variant.claim)
        if not wanted:
            return SUCCESS
        answer = devices.answers.get(node_name)
        if answer is None and node is not None:  # it was remembered that something fits there
            answer = self.answer_for(wanted, self._devices.target(node))
        if answer is None or not answer.results:
            return failed(LookupError("claim allocation not found for node"))
        if self._extended is not None and extension is not None and isinstance(variant, Variant):
            self._extended.reserve(extension, variant, answer.results[-1])
        results = answer.results[: len(devices.to_allocate)]
        for claim, result in zip(devices.to_allocate, results, strict=True):
            allocated = with_finalizer(
                replace(claim, status=replace(claim.status, allocation=result))
            )
            devices.reserved.append(allocated)
            self._tracker.take_off(allocated)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return
        for claim in devices.reserved:
            self._tracker.land(claim)
        devices.reserved.clear()
        if self._extended is not None and devices.extension is not None:
            self._extended.unreserve(devices.extension, self._spawn)
        if devices.written:
            dropped = self._dropped[pod.uid] = asyncio.Event()
            self._spawn(self._drop_reservations(devices.written, pod, dropped))

    async def _drop_reservations(
        self, claims: Sequence[ResourceClaim], pod: PodInfo, dropped: asyncio.Event
    ) -> None:
        try:
            for claim in claims:
                await self._drop_reservation(claim, pod)
        finally:
            dropped.set()
            if self._dropped.get(pod.uid) is dropped:
                del self._dropped[pod.uid]

    async def _drop_reservation(self, claim: ResourceClaim, pod: PodInfo) -> None:
        try:
            current = await self._writer.drop_reservation(claim, pod)
        except ClientError as error:
            log.warning("claim %s: its reservation stays: %s", claim.metadata.name, error)
            return
        if current is not None:
            self._tracker.assume(current)

    # --- bind ---

    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        return state.get(NAME) is not None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        devices: PodDevices = state[NAME]
        decided = {claim.metadata.uid: claim.status.allocation for claim in devices.reserved}
        if (dropped := self._dropped.get(pod.uid)) is not None:
            # Or what an earlier attempt takes back would be what this one counts on.
            await dropped.wait()
        try:
            for claim in devices.claims:
                allocation = decided.get(claim.metadata.uid)
                newest = self._tracker.get(key_of(claim))
                written = await self._writer.allocate_and_reserve(
                    claim, pod, allocation, self._timestamp(), newest
                )
                if written is not newest:
                    devices.written.append(written)
                    self._tracker.assume(written)
            if self._extended is not None and devices.extension is not None:
                await self._extended.bind(devices.extension, self._timestamp())
        except (ClaimChangedError, ClientError) as error:
            await self._look_again(devices)
            return failed(error)
        for claim in devices.reserved:
            self._tracker.land(claim)
        devices.reserved.clear()
        if self._gate is None:
            return SUCCESS
        status = await self._gate.open_for(pod, node_name, devices.claims)
        if not status.is_success:
            devices.written = [claim for claim in devices.written if self._is_reserved(claim, pod)]
        return status

    def _is_reserved(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        current = self._tracker.get(key_of(claim))
        return current is not None and is_reserved_for(current, pod)

    async def _look_again(self, devices: PodDevices) -> None:
        """After a failure, see what claims hold before others get the devices: a write may have arrived."""
        for claim in devices.reserved:
            try:
                self._tracker.assume(await self._writer.read_again(claim))
            except ClientError as error:
                log.info("claim %s: %s", claim.metadata.name, error)

    def _timestamp(self) -> datetime | None:
        """When the allocation was made, if anybody will want to know (KEP-5007)."""
        return self._clock() if self._gate is not None else None


def key_of(claim: ResourceClaim) -> ObjectKey:
    return ObjectKey(claim.metadata.namespace, claim.metadata.name)
