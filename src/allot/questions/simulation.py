"""Simulation: the pods and workloads of manifests on the nodes of manifests, at once or in virtual time.

    allot.dev/arrival-seconds: "90"    a pod or a workload that is created 90 s after the beginning
    allot.dev/run-seconds: "600"       how long the containers of a pod run, as in `allot nodes`

Without these annotations all pods are scheduled at the beginning, and run for ever. Time passes from event to event,
so that a day takes as long as its decisions. A pod that is restarted when it ends (`restartPolicy: Always`) never ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import replace as replaced
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.core import Pod
from allot.api.decoding import to_builtin
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.controllers.workloads.ownership import controller_of
from allot.kubelet.container_behaviour import container_behaviour
from allot.kubelet.settings import KubeletSettings
from allot.questions.cluster_model import ClusterModel
from allot.questions.device_usage import UsageFigures
from allot.questions.fit import alternatives_text
from allot.questions.object_changes import put_object
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.placements import Placement
from allot.questions.simulation_figures import (
    PendingPod,
    PlacedPod,
    Sample,
    SimulationAnswer,
    simulation_figures,
    thinned,
)
from allot.questions.what_if import why_waiting
from allot.questions.workload_model import WORKLOADS, with_defaults

ARRIVAL_SECONDS: Final = "allot.dev/arrival-seconds"
_SETTINGS: Final = KubeletSettings()
_MAX_RUNS: Final = 1000
"""Restarts of a container that are followed until one succeeds."""


class SimulationError(ValueError):
    """An annotation cannot be understood."""


class Simulated(NamedTuple):
    """The answer, and all objects at the end."""

    answer: SimulationAnswer
    objects: Snapshot


def simulate(
    cluster: ObservedCluster,
    progress: Callable[[int], None] | None = None,
    until_seconds: float = math.inf,
) -> Simulated:
    """Schedule what is there; `SimulationError` for annotations that cannot be understood."""
    return _Simulation(cluster).run(progress, until_seconds)


class _TimedModel(ClusterModel):
    """A cluster in which pods end."""

    def __init__(self, cluster: ObservedCluster) -> None:
        self.started: list[tuple[float, Placement]] = []
        super().__init__(cluster)

    def bind(self, placement: Placement) -> None:
        super().bind(placement)
        self.started.append((self.now, placement))


class _Simulation:
    def __init__(self, cluster: ObservedCluster) -> None:
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        objects, later = _split_by_arrival(cluster.objects)
        self._model = _TimedModel(replaced(cluster, objects=objects))
        self._notes = list(cluster.notes)
        for seconds, resource, obj in later:
            self._at(seconds, partial(self._arrive, resource, obj))
        self._has_time = bool(later)
        self._finished = 0
        self._restarting = 0
        self._placed: list[PlacedPod] = []
        self._waits: list[float] = []
        self._samples: list[Sample] = []

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._numbers), action))

    def _arrive(self, resource: Resource[Any], obj: Any) -> None:
        refusal = put_object(self._model, resource, obj)
        if refusal:
            self._notes.append(f"{resource.kind.lower()}/{obj.metadata.name}: {refusal}")

    # --- time ---

    def run(self, progress: Callable[[int], None] | None, until_seconds: float) -> Simulated:
        model = self._model
        while True:
            model.settle(progress, skips_delays=False)
            self._take_started()
            self._sample()
            if progress is not None:
                progress(len(self._placed))
            due = self._next_due()
            if due is None or due > until_seconds:
                break
            model.now = max(model.now, due)
            while self._events and self._events[0][0] <= model.now:
                heapq.heappop(self._events)[2]()
        return Simulated(self._answer(), model.objects)

    def _next_due(self) -> float | None:
        """When something happens next; None if nothing does."""
        moments = [self._events[0][0]] if self._events else []
        moments += filter(None, [self._model.workloads.next_delay()])
        retry = self._model.scheduler.next_due()
        if retry is not None and retry > self._model.now:
            moments.append(retry)
        return min(moments, default=None)

    def _take_started(self) -> None:
        """Record the pods that got a node, and when they end."""
        model = self._model
        for at, placement in model.started:
            waited = at - model.created_seconds.pop(placement.pod.uid, 0.0)
            self._waits.append(waited)
            self._placed.append(_placed(placement, at, waited))
            self._plan_end(placement.pod.pod, placement.pod.uid)
        model.started.clear()

    def _plan_end(self, pod: Pod, uid: str) -> None:
        ends_after, phase = lifetime(pod)
        if ends_after is None:
            if phase:
                self._restarting += 1
            return
        self._has_time = True
        self._at(self._model.now + ends_after, partial(self._end, pod.key, uid, phase))

    def _end(self, key: ObjectKey, uid: str, phase: str) -> None:
        pod = self._model.objects.get(resources.PODS, key)
        if pod is None or pod.metadata.uid != uid or not pod.node_name:
            return  # evicted before
        self._finished += 1
        self._model.finish_pod(pod, phase)

    # --- figures ---

    def _sample(self) -> None:
        model = self._model
        figures: UsageFigures = model.usage.figures()
        sample = Sample(
            seconds=round(model.now, 3),
            running=len(model.scheduler.cluster.pods),
            waiting=model.scheduler.waiting_count,
            utilisation=figures.utilisation,
            fragmentation=figures.fragmentation,
        )
        if self._samples and self._samples[-1].seconds == sample.seconds:
            self._samples.pop()
        self._samples.append(sample)

    def _answer(self) -> SimulationAnswer:
        model = self._model
        pods = {pod.key: pod for pod in model.waiting_pods()}
        pending = tuple(
            PendingPod(str(key), why_waiting(model, info.pod)) for key, info in sorted(pods.items())
        )
        preempted = sum(why.startswith("preempted") for why in model.evictions.values())
        notes = [*self._notes]
        notes += (
            f"{kind.lower()}/{key.name} cannot create all of its pods: {why}"
            for (kind, key), why in model.workloads.refused.items()
        )
        if self._restarting:
            notes.append(
                f"{self._restarting} pods with run-seconds never end, because their restartPolicy is Always"
            )
        return SimulationAnswer(
            placed=tuple(self._placed),
            pending=pending,
            figures=simulation_figures(
                self._samples, self._waits, len(pending), self._finished, preempted
            ),
            timeline=tuple(thinned(self._samples)) if self._has_time else (),
            notes=tuple(notes),
        )


def _placed(placement: Placement, at: float, waited: float) -> PlacedPod:
    devices = tuple(
        f"{result.request}: {result.device_id}"
        for claim in placement.claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
    return PlacedPod(
        pod=str(placement.pod.key),
        node=placement.node_name,
        devices=devices,
        alternatives=alternatives_text(placement),
        at_seconds=round(at, 3),
        waited_seconds=round(waited, 3),
        waits_for_devices=placement.waits,
    )


def lifetime(pod: Pod) -> tuple[float | None, str]:
    """How long a pod runs, and its phase then. None: for ever, with a phase only because it restarts."""
    behaviour = container_behaviour(pod, _SETTINGS)
    policy = pod.get("spec", "restartPolicy", default="Always")
    longest, phase = 0.0, "Succeeded"
    for container in pod.get("spec", "containers", default=()):
        name = container.get("name") or ""
        seconds = behaviour.run_seconds(name)
        if seconds is None:
            return None, ""
        runs = 1
        if policy == "OnFailure":
            succeeded = (run for run in range(_MAX_RUNS) if not behaviour.exit_code(name, run))
            last = next(succeeded, None)
            if last is None:
                return None, "Failed"
            runs = last + 1
        elif behaviour.exit_code(name, 0):
            phase = "Failed"
        longest = max(longest, seconds * runs)
    if policy == "Always" and not behaviour.completes:
        return None, phase
    return behaviour.start_seconds + longest, phase


# --- arrival ---


def _split_by_arrival(
    objects: Snapshot,
) -> tuple[Snapshot, list[tuple[float, Resource[Any], Any]]]:
    """The objects of the beginning, and those that are created later, in order."""
    first = objects.copy()
    later: list[tuple[float, Resource[Any], Any]] = []
    kinds: tuple[Resource[Any], ...] = (*WORKLOADS, resources.PODS)
    for resource in kinds:
        for obj in objects.of(resource):
            seconds = arrival_seconds(obj)
            if seconds:
                first.remove(resource, obj.key)
                later.append((seconds, resource, obj))
            elif resource is not resources.PODS:
                first.put(resource, with_defaults(obj))
    later.sort(key=lambda each: each[0])
    return first, later


def arrival_seconds(obj: Any) -> float:
    """When an object is created; 0 without the annotation, and for what another object controls."""
    text = obj.metadata.annotations.get(ARRIVAL_SECONDS)
    if text is None or controller_of(obj) is not None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not math.isfinite(seconds) or seconds < 0:
        what = f"{obj.kind.lower()}/{obj.metadata.name}"
        raise SimulationError(f"{what}: {ARRIVAL_SECONDS}: {text!r} is not a number of seconds")
    return seconds


def documents(objects: Snapshot) -> Iterable[dict[str, Any]]:
    """All objects as manifests, which `allot simulate -f` takes again."""
    for resource in KINDS:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        for obj in objects.of(resource):
            if isinstance(obj, RawObject):
                yield {**obj.data, **head}
            else:
                yield {**head, **msgspec.to_builtins(obj, enc_hook=to_builtin, str_keys=True)}
