"""A cluster in memory that goes on: its pods are scheduled, workloads keep their pods, claims are made and released.

    create_pod ─► claims from templates ─► queue ─► bind ─► running ─► finish_pod or delete_pod ─► claims released
        ▲                                                                    │
        └───────────────── workloads replace their pods ◄────────────────────┘

Nothing takes time but what the caller says: `settle` runs until nothing more happens at this moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

import msgspec

from allot.api.claims import ResourceClaim
from allot.api.core import Node, Pod
from allot.api.generated_names import suffix_of
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.client import resources
from allot.controllers.resource_claims.decisions import (
    ConsumerState,
    Deallocate,
    ReleaseConsumers,
    RemoveFinalizer,
    plan,
    written_by,
)
from allot.controllers.resource_claims.templates import is_made_for
from allot.controllers.workloads.names import generated_name
from allot.controllers.workloads.ownership import controller_of
from allot.questions.device_usage import DeviceUsage
from allot.questions.new_pods import (
    admitted,
    missing_template,
    named,
    new_claims,
    priority_classes,
    with_claim_names,
)
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.placements import Placement, bound_pod
from allot.questions.quota_model import QuotaModel
from allot.questions.scheduling_simulator import Failure, SchedulingSimulator
from allot.questions.workload_model import (
    BY_KIND,
    SCALED_DOWN,
    WorkloadModel,
    with_inferred_replica_sets,
)
from allot.scheduler.explain.admin_access import is_admin_access_forbidden
from allot.scheduler.explain.explanations import NodeExplanation
from allot.scheduler.state.pods import PodInfo

_MAX_ROUNDS: Final = 10_000
"""Of one call of `settle`; more would mean that pods evict each other for ever."""


class ClusterModel:
    """A copy of an observed cluster. The observed one does not change."""

    def __init__(self, cluster: ObservedCluster) -> None:
        self.now = 0.0
        """Seconds since the moment of the observation."""
        self.began = cluster.now
        """The moment of the observation."""
        self._written_time = 0.0, ""
        """The last moment that was written, and its text."""
        self.objects = with_inferred_replica_sets(cluster.objects).copy()
        self._classes = priority_classes(self.objects)
        self._pods_by_owner: dict[str, dict[str, Pod]] = {}
        self._specs: dict[int, tuple[Any, Any]] = {}
        """Specs with defaults, by the identity of those without, which is cheaper than their content."""
        self._specs_by_content: dict[bytes, Any] = {}
        self._suffixes = count(1)
        self._incarnations: dict[ObjectKey, int] = {}
        self._explained: dict[tuple[int, str], tuple[object, NodeExplanation | None]] = {}
        self.created_seconds: dict[str, float] = {}
        """When pods were created here, by uid."""
        self.evictions: dict[str, str] = {}
        """Why pods were deleted that had a node, by uid."""
        self.placements: list[Placement] = []
        """All pods that got a node here, in order."""
        self._quotas = QuotaModel(self.objects, cluster.now)
        self._admit_all()
        self.recount_devices()
        self.scheduler = SchedulingSimulator(
            replaced(cluster, objects=self.objects), lambda: self.now
        )
        self.scheduler.writes = self
        self.workloads = WorkloadModel(self)

    def today(self) -> datetime:
        return self.began + timedelta(seconds=self.now)

    def _today_text(self) -> str:
        """The time as objects have it. Many pods are bound at one moment."""
        now, text = self._written_time
        if now != self.now or not text:
            text = written_time(self.today())
            self._written_time = self.now, text
        return text

    def _admit_all(self) -> None:
        """Give pods of manifests what the API server and the claim controller would give them."""
        for given in self.objects.of(resources.PODS):
            pod = given
            self._incarnations[pod.key] = 1
            if not pod.node_name and not pod.is_finished:
                pod = self._with_claims(self._admitted(pod), self._put_object)
                self.objects.put(resources.PODS, pod)
            self._index(pod)

    def _put_object(self, claim: ResourceClaim) -> None:
        self.objects.put(resources.RESOURCE_CLAIMS, claim)

    # --- pods ---

    def pods_of(self, owner_uid: str) -> list[Pod]:
        return list(self._pods_by_owner.get(owner_uid, {}).values())

    def create_pod(self, pod: Pod, base: str = "") -> str:
        """Create a pod, with a generated name if `base` is given; why it was refused, or an empty string."""
        pod = self._admitted(pod)
        name = generated_name(base, self._suffix) if base else pod.key.name
        pod = named(pod, name, self.today())
        times = self._incarnations[pod.key] = self._incarnations.get(pod.key, 0) + 1
        if times > 1:  # a pod of a StatefulSet that is created anew
            pod = pod.with_value(f"{_uid(pod)}#{times}", "metadata", "uid")
        refusal = self._quotas.refuse_pod(pod)
        if refusal:
            return refusal
        self.created_seconds[_uid(pod)] = self.now
        self.objects.put(resources.PODS, pod)
        pod = self._with_claims(pod, self._put_claim)
        self._index(pod)
        self.scheduler.put_pod(pod)
        return ""

    def _admitted(self, pod: Pod) -> Pod:
        """The pod with defaults; pods with equal specs share one."""
        spec = pod.data.get("spec")
        by_identity = self._specs.get(id(spec))
        if by_identity is not None and by_identity[0] is spec:
            return Pod({**pod.data, "spec": by_identity[1]})
        content = msgspec.json.encode(spec)
        found = self._specs_by_content.get(content)
        if found is None:
            found = admitted(pod, self._classes).data["spec"]
            self._specs_by_content[content] = found
        self._specs[id(spec)] = spec, found
        return Pod({**pod.data, "spec": found})

    def _suffix(self) -> str:
        """Different for each pod, and the same in each run."""
        number = next(self._suffixes) * 7_368_787  # a prime: consecutive names do not look alike
        return suffix_of(number)

    def _with_claims(self, pod: Pod, put: Callable[[ResourceClaim], None]) -> Pod:
        made = {}
        for entry, claim in new_claims(pod, self.objects):
            if is_admin_access_forbidden(claim, self.objects):
                continue
            if self._quotas.refuse_claim(pod.key.namespace, claim):
                continue
            put(claim)
            made[entry] = claim.metadata.name
        return with_claim_names(pod, made) if made else pod

    def _put_claim(self, claim: ResourceClaim) -> None:
        self.scheduler.put_claim(claim)

    def _index(self, pod: Pod) -> None:
        controller = controller_of(pod)
        if controller is not None:
            self._pods_by_owner.setdefault(controller.uid, {})[_uid(pod)] = pod

    def _unindex(self, pod: Pod) -> None:
        controller = controller_of(pod)
        if controller is not None:
            self._pods_by_owner.get(controller.uid, {}).pop(_uid(pod), None)

    # --- what the scheduler does ---

    def bind(self, placement: Placement) -> None:
        """The pod has its node, and runs unless its devices must be made ready first."""
        pod = bound_pod(placement)
        if not placement.waits:
            pod = _running(pod, self._today_text())
        for claim in placement.claims:
            allocation = claim.status.allocation
            if allocation is not None and len(claim.status.reserved_for) == 1:
                self.usage.take(allocation)
        self.placements.append(placement)
        self._index(pod)
        self.scheduler.put_pod(pod)
        self.workloads.pod_changed(pod)

    def evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        self.delete_pod(victim.pod, f"preempted by pod {preemptor.key}")

    # --- the end of pods ---

    def delete_pod(self, pod: Pod, reason: str = "") -> None:
        """Delete a pod; its claims are released, its own ones deleted."""
        current = self.objects.get(resources.PODS, pod.key)
        if current is None or _uid(current) != _uid(pod):
            return
        if current.node_name and reason:
            self.evictions[_uid(current)] = reason
        self._unindex(current)
        controller = controller_of(current)
        if reason and reason != SCALED_DOWN and controller is not None and controller.kind == "Job":
            # The Job counts it as failed, and replaces it after a backoff.
            self._index(_failed(current, self._today_text()))
        self.scheduler.remove_pod(current)
        self._release(current, ConsumerState.GONE)
        self._quotas.forget(current.key.namespace)
        self.workloads.pod_changed(current)

    def finish_pod(self, pod: Pod, phase: str) -> None:
        """The containers of a pod have ended; the object stays."""
        finished = pod.with_value(
            {
                **pod.get("status", default={}),
                "phase": phase,
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "lastTransitionTime": self._today_text(),
                    }
                ],
            },
            "status",
        )
        if phase == "Succeeded" and self.workloads.count_success(finished):
            self._unindex(finished)
        else:
            self._index(finished)
        self.scheduler.put_pod(finished)
        self._release(finished, ConsumerState.DONE)
        self._quotas.forget(finished.key.namespace)
        self.workloads.pod_changed(finished)

    def _release(self, pod: Pod, owner: ConsumerState) -> None:
        namespace, uid = pod.key.namespace, _uid(pod)
        for name in pod.used_claims:
            claim = self.objects.get(resources.RESOURCE_CLAIMS, ObjectKey(namespace, name))
            if claim is None:
                continue
            is_own = is_made_for(claim, uid)
            before = claim.status.allocation
            state = owner if is_own else ConsumerState.NEEDED
            for step in plan(claim, {uid}, state):
                if isinstance(step, ReleaseConsumers | Deallocate | RemoveFinalizer):
                    claim = written_by(step, claim)
            if before is not None and (is_own or claim.status.allocation is None):
                self.usage.release(before)
            if is_own:
                self.scheduler.remove_claim(claim)
            else:
                self.scheduler.put_claim(claim)

    def remove_claim(self, claim: ResourceClaim) -> None:
        """Delete a claim that no pod uses."""
        if claim.status.allocation is not None:
            self.usage.release(claim.status.allocation)
        self.scheduler.remove_claim(claim)
        self._quotas.forget(claim.metadata.namespace)

    def recount_devices(self) -> None:
        """Slices have changed."""
        self.usage = DeviceUsage(self.objects.of(resources.RESOURCE_SLICES))
        for claim in self.objects.of(resources.RESOURCE_CLAIMS):
            if claim.status.allocation is not None:
                self.usage.take(claim.status.allocation)

    # --- nodes ---

    def put_node(self, node: Node) -> None:
        self.objects.put(resources.NODES, node)
        self.scheduler.handlers.on_node_update(node)
        self.workloads.nodes_changed()

    def remove_node(self, node: Node) -> None:
        """Delete a node and the slices that are local to it."""
        name = node.metadata.name
        self.objects.remove(resources.NODES, node.key)
        for slice_ in self.objects.of(resources.RESOURCE_SLICES):
            if slice_.spec.node_name == name:
                self.objects.remove(resources.RESOURCE_SLICES, slice_.key)
                self.scheduler.handlers.on_slice_delete(slice_)
        self.scheduler.handlers.on_node_delete(node)
        self.recount_devices()
        self.workloads.nodes_changed()

    def pods_on(self, node_name: str) -> list[Pod]:
        """The unfinished pods of a node, by namespace and name."""
        info = self.scheduler.cluster.node(node_name)
        found = [] if info is None else [each.pod for each in info.pods.values()]
        return sorted(found, key=lambda pod: pod.key)

    # --- workloads ---

    def put_workload(self, workload: RawObject) -> None:
        """Keep a workload that was added or changed; the scheduler spreads its pods."""
        self.objects.put(BY_KIND[workload.kind], workload)
        self.scheduler.put_workload(workload)

    def remove_workload(self, workload: RawObject) -> None:
        self.objects.remove(BY_KIND[workload.kind], workload.key)
        self.scheduler.remove_workload(workload)

    # --- going on ---

    def settle(
        self, progress: Callable[[int], None] | None = None, *, skips_delays: bool = True
    ) -> None:
        """Schedule pods and sync workloads until nothing more happens.

        The backoff of Jobs is skipped, in order, when all else is done; or (without `skips_delays`) left to the caller.
        """
        for _ in range(_MAX_ROUNDS):
            self.workloads.sync()
            attempts = 0
            while self.scheduler.schedule_next():
                attempts += 1
                if progress is not None and not attempts % 500:
                    progress(len(self.placements))
            if attempts or self.workloads.sync():
                continue
            due = self.workloads.next_delay()
            if due is None or not skips_delays:
                return
            self.now = max(self.now, due)
        raise RuntimeError("pods evict each other without an end")

    def waiting_pods(self) -> list[PodInfo]:
        """The pods that have no node, by priority and age."""
        pods = list(self.scheduler.waiting())
        return sorted(pods, key=lambda pod: (-pod.priority, pod.key))

    def why_waiting(self, pod: PodInfo) -> str:
        """Why a pod has no node, in one line, as in its condition."""
        missing = missing_template(pod.pod, self.objects)
        if missing:
            return missing
        failure = self.scheduler.failures.get(pod.uid)
        return failure.message if failure is not None else self.scheduler.gate_of(pod)

    def explained_once(self, failure: Failure, node: str) -> NodeExplanation | None:
        """Why the node rejects the pod; pods of one equivalence class share the answer."""
        key = id(failure.statuses), node
        known = self._explained.get(key)
        if known is None or known[0] is not failure.statuses:
            found = self.scheduler.status_on(failure.pod, node)
            known = self._explained[key] = failure.statuses, found
        return known[1]


def _uid(pod: Pod) -> str:
    return str(pod.data["metadata"].get("uid") or "")


def _failed(pod: Pod, now: str) -> Pod:
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": now}
    return pod.with_value({"phase": "Failed", "conditions": [ready]}, "status")


def _running(pod: Pod, now: str) -> Pod:
    status = {
        **pod.get("status", default={}),
        "phase": "Running",
        "startTime": now,
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
            {"type": "Ready", "status": "True", "lastTransitionTime": now},
        ],
    }
    status.pop("nominatedNodeName", None)
    return pod.with_value(status, "status")
