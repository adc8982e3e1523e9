"""DynamicResources: the filter and score of `claim_filter`, with reserve, pre_bind and post_filter."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from allot.allocation import chosen_alternatives
from allot.api.base import replace, whole_seconds
from allot.api.claims import ResourceClaim
from allot.client.errors import ClientError
from allot.features import DERIVED_ATTRIBUTES
from allot.scheduler.framework.concurrency_limit import released_slot
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugins import (
    LifecyclePlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    ReservePlugin,
)
from allot.scheduler.framework.status import SUCCESS, Status, failed, unschedulable
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.claim_allocator import (
    NAME,
    no_avoided_devices,
    no_extended_resources,
    why_unusable_without_gate,
)
from allot.scheduler.plugins.dynamic_resources.claim_filter import ClaimFilter
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import (
    ClaimWriter,
    held_devices,
)
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.failed_devices import (
    HELD_DEVICE_BACKOFF,
    FailedDevices,
)
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    DynamicResourcesArgs,
    PodDevices,
    ignored_attributes,
)
from allot.scheduler.plugins.dynamic_resources.node_bound_devices import (
    ON_TWO_NODES,
    claimed_on_two_nodes,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from allot.scheduler.plugins.dynamic_resources.pod_extension import PodExtension, Variant
from allot.scheduler.plugins.dynamic_resources.skipped_alternatives import (
    SkippedAlternatives,
)
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.scheduler.framework.ordered_binding import OrderedBinding

log = logging.getLogger(__name__)

DEALLOCATED: Final = "deallocation of ResourceClaim completed"
DELETED: Final = "deletion of ResourceClaim completed"


class DynamicResources(
    ClaimFilter, PostFilterPlugin, ReservePlugin, PreBindPlugin, PostBindPlugin, LifecyclePlugin
):
    """Allocates the claims of pods."""

    def __init__(
        self,
        handle: Handle,
        writer: ClaimWriter,
        args: DynamicResourcesArgs = DynamicResourcesArgs(),  # noqa: B008 - immutable
        *,
        extended: ExtendedClaims | None = None,
        gate: BindingGate | None = None,
        failed_devices: FailedDevices | None = None,
        new_share_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        """`extended` serves extended resources with devices; None if that is off.

        `gate` holds pods back until their devices are ready; None if that is off. `failed_devices` are those that
        pods avoid; None if they do not.
        """
        super().__init__(
            handle.claims,
            handle.devices,
            args,
            new_share_id,
            find_extension=extended.find_extension
            if extended is not None
            else no_extended_resources,
            why_unusable=(
                gate.why_unusable
                if gate is not None
                else why_unusable_without_gate(handle.devices.gates)
            ),
            avoided_devices=(
                failed_devices.avoided_devices if failed_devices is not None else no_avoided_devices
            ),
            monotonic=handle.clock,
        )
        self._writer = writer
        self._nodes = handle.cluster.node
        self._spawn = handle.spawn
        self._utc_now = handle.utc_now
        self._extended = extended
        self._gate = gate
        self._failed_devices = failed_devices
        self._warn = handle.events.warn
        self._skipped = SkippedAlternatives(handle.events.warn)
        self._metrics = handle.metrics
        self._dropped: dict[str, asyncio.Event] = {}
        """Pods whose reservations are being removed, by uid."""

    # --- outside the scheduling cycle ---

    def caches_synced(self, gated: Iterable[PodInfo]) -> None:
        if self._gate is not None:
            for pod in gated:
                self._gate.release_if_claim_missing(pod)

    def binding_cancelled(self, pod: PodInfo) -> None:
        if self._gate is not None:
            self._gate.release_claims(pod)

    def node_deleted(self, name: str) -> None:
        if self._gate is not None:
            self._gate.on_node_delete(name)

    # --- the queue ---

    def _on_unusable_claims(self, pod: PodInfo) -> None:
        if self._gate is not None:
            self._gate.release_if_claim_missing(pod)

    # --- filter ---

    def _on_usable_claims(self, pod: PodInfo, devices: PodDevices) -> None:
        if devices.has_alternatives:
            classes = self._devices.classes
            self._skipped.report_missing_classes(pod, devices.to_allocate, classes)
        for claim in devices.to_allocate:
            names = ignored_attributes(claim, self._gates)
            if names:
                note = (
                    f"resource claim {claim.key}: derived attributes {', '.join(names)} are"
                    f" ignored, because feature gate {DERIVED_ATTRIBUTES} is off"
                )
                self._warn(pod, "DerivedAttributesDisabled", note)

    # --- when nothing fits ---

    async def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> PostFilterResult:
        """Deallocate a claim that ties the pod to nodes where it does not fit, if no other pod uses it."""
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return PostFilterResult(unschedulable())
        if devices.extension is not None and devices.extension.left_over:
            return await self._remove_left_over(devices.extension)
        for index, claim in enumerate(devices.claims):
            reason = self._why_release(claim, pod)
            if not reason and index not in devices.unavailable:
                continue
            has_others = any(consumer.uid != pod.uid for consumer in claim.status.reserved_for)
            if has_others and not (reason and is_reserved_for(claim, pod)):
                continue
            try:
                if has_others:  # they may wait for it, too; who lets go last, clears it
                    changed = await self._writer.release(claim, pod)
                else:
                    changed = await self._writer.deallocate(claim)
            except ClientError as error:
                return PostFilterResult(failed(error))
            if changed is not None:
                self._tracker.assume(changed)
            text = f"{DEALLOCATED}: {reason}" if reason else DEALLOCATED
            return PostFilterResult(unschedulable(text))
        return PostFilterResult(unschedulable())

    def _why_release(self, claim: ResourceClaim, pod: PodInfo) -> str:
        """Why a pod that no node takes must not keep a claim; empty if it may."""
        if self._gate is not None:
            return self._gate.why_release(claim, pod)
        return self._why_unusable(claim)

    async def _remove_left_over(self, extension: PodExtension) -> PostFilterResult:
        assert self._extended is not None
        try:
            await self._extended.remove_left_over(extension)
        except (ClaimChangedError, ClientError) as error:
            return PostFilterResult(failed(error))
        return PostFilterResult(unschedulable(DELETED))

    # --- reserve ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return SUCCESS
        node = self._nodes(node_name)
        extension = devices.extension
        wanted, variant = list(devices.to_allocate), None
        if extension is not None and node is not None:
            variant = extension.variant_on(node)
            if isinstance(variant, Variant):
                wanted.append(variant.claim)
        if not wanted:
            return SUCCESS
        if node is None:
            return failed(LookupError("the node is gone"))
        target = self._devices.target(node)
        answer = self._allocation_on(devices, wanted, target, state.time, with_results=True)
        if not answer.results:
            return failed(LookupError("claim allocation not found for node"))
        self._skipped.report_unusable_pools(pod, node_name, answer.skipped)
        if self._devices.has_node_bound_devices:
            inventory = self._devices.inventory
            for note in claimed_on_two_nodes(answer.results, target, self._tracker, inventory):
                log.warning("pod %s: %s", pod.key, note)
                self._warn(pod, ON_TWO_NODES, note)
        if self._extended is not None and extension is not None and isinstance(variant, Variant):
            self._extended.reserve(extension, variant, answer.results[-1])
        results = answer.results[: len(devices.to_allocate)]
        for claim, result in zip(devices.to_allocate, results, strict=True):
            allocated = replace(claim, status=replace(claim.status, allocation=result))
            devices.reserved.append(allocated)
            self._tracker.add_pending_allocation(allocated)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        devices: PodDevices | None = state.get(NAME)
        if devices is None:
            return
        for claim in devices.reserved:
            self._tracker.remove_pending_allocation(claim)
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
        try:
            write = partial(self._write, devices, pod, state.binding)
            if self._gate is None:
                await write(True)
            else:
                decided = devices.decided
                await self._gate.write_and_wait(pod, node_name, decided, write, state.binding)
        except (ClaimChangedError, ClientError) as error:
            devices.written = [claim for claim in devices.written if self._is_reserved(claim, pod)]
            self._avoid_held_devices(pod, devices.decided, error)
            return failed(error)
        return SUCCESS

    def _avoid_held_devices(
        self, pod: PodInfo, decided: Sequence[ResourceClaim], error: Exception
    ) -> None:
        """The API server says that others hold a device, and we would choose it again: our gates may differ."""
        if self._failed_devices is None:
            return
        held = held_devices(decided, error)
        if held:
            self._failed_devices.add(pod, held, HELD_DEVICE_BACKOFF)

    async def _write(
        self, devices: PodDevices, pod: PodInfo, binding: OrderedBinding | None, may_bind: bool
    ) -> list[ResourceClaim]:
        """The pod's claims after they were given to it; `ClaimChangedError` or `ClientError` if they could not be.

        `binding` is sent with the last write if it `may_bind`: if nothing else is to be done before.
        """
        if not may_bind or devices.extension is not None:
            binding = None
        decided = {claim.metadata.uid: claim.status.allocation for claim in devices.reserved}
        if (dropped := self._dropped.get(pod.uid)) is not None:
            # Or what an earlier attempt takes back would be what this one counts on.
            async with released_slot():
                await dropped.wait()
        result: list[ResourceClaim] = []
        try:
            for claim in devices.claims:
                allocation = decided.get(claim.metadata.uid)
                newest = self._tracker.get(claim.key)
                written = await self._writer.allocate_and_reserve(
                    claim,
                    pod,
                    allocation,
                    self._timestamp(),
                    devices.found_reserved.append,
                    binding if claim is devices.claims[-1] else None,
                )
                result.append(written)
                if written is not newest:
                    devices.written.append(written)
                    self._tracker.assume(written)
            if self._extended is not None and devices.extension is not None:
                result += await self._extended.bind(devices.extension, self._timestamp())
        except (ClaimChangedError, ClientError):
            await self._reread_claims(devices)
            raise
        for claim in devices.reserved:
            self._tracker.remove_pending_allocation(claim)
            if devices.has_alternatives and claim.status.allocation is not None:
                for chosen in chosen_alternatives(claim, claim.status.allocation):
                    if self._metrics is not None:
                        self._metrics.alternative_chosen(pod.scheduler_name, chosen.rank)
        devices.reserved.clear()
        return result

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        if self._failed_devices is not None:
            self._failed_devices.forget(pod)
        devices: PodDevices | None = state.get(NAME)
        if devices is not None and devices.found_reserved:
            self._spawn(self._keep_reserved(devices.found_reserved, pod))

    async def _keep_reserved(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> None:
        """Reserve the claims again if another scheduler removed the reservation during the binding."""
        for claim in claims:
            try:
                current = await self._writer.keep_reserved(claim, pod)
            except ClientError as error:
                log.warning("claim %s: is it still reserved? %s", claim.metadata.name, error)
            else:
                if current is not None:
                    self._tracker.assume(current)

    def _is_reserved(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        current = self._tracker.get(claim.key)
        return current is not None and is_reserved_for(current, pod)

    async def _reread_claims(self, devices: PodDevices) -> None:
        """After a failure, see what claims hold before others get the devices: a write may have arrived."""
        for claim in devices.reserved:
            try:
                self._tracker.assume(await self._writer.read_again(claim))
            except ClientError as error:
                log.info("claim %s: %s", claim.metadata.name, error)

    def _timestamp(self) -> datetime | None:
        """The allocation timestamp, as it is stored; None if pods do not wait for devices (KEP-5007)."""
        return whole_seconds(self._utc_now()) if self._gate is not None else None
