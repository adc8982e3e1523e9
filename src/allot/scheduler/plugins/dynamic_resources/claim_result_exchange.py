"""Results of the claim filter that a child process found: exported there, imported by the scheduler.

A result is used if the node's devices are unchanged, or if the same devices are still available.
"""

from __future__ import annotations

from allot.allocation import TargetNode, replay
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import NodesByName, SlowFilterPlugin
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME, ClaimAllocator
from allot.scheduler.plugins.dynamic_resources.filter_results import (
    ExportedAllocations,
    NodeAllocation,
    PodDevices,
)
from allot.scheduler.plugins.dynamic_resources.pod_claims import Unusable, claims_of
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class ClaimResultExchange(ClaimAllocator, SlowFilterPlugin):
    """The part of the claim filter for background decisions."""

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
            answer = self._allocation_on(devices, wanted, target, state.time, with_results=True)
            last_change = self._devices.last_change(target.name)
            if devices.known.get(target, last_change) is not None:
                devices.known.put(target, last_change, answer)  # of its class it has no results
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
            # Whether a node times out hardly depends on single devices.
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
        """The same devices, if they are still available to the pod's claims on the node."""
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
