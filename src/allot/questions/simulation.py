"""Simulation: the pods and workloads of manifests on the nodes of manifests, at once or in virtual time.

    allot.dev/arrival-seconds: "90"    a pod or a workload that is created 90 s after the beginning
    allot.dev/run-seconds: "600"       how long the containers of a pod run, as in `allot nodes`

Without these annotations all pods are scheduled at the beginning, and run for ever. Time passes from event to event,
so that a day takes as long as its decisions. A pod that is restarted when it ends (`restartPolicy: Always`) never ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as replaced
from functools import partial
from itertools import count, pairwise
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import ApiObject, always
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
from allot.questions.changes import put_object
from allot.questions.cluster_model import ClusterModel
from allot.questions.device_usage import UsageFigures
from allot.questions.fit import alternatives_text
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.placements import Placement
from allot.questions.what_if import why_waiting
from allot.questions.workload_model import WORKLOADS, with_defaults

ARRIVAL_SECONDS: Final = "allot.dev/arrival-seconds"
_SETTINGS: Final = KubeletSettings()
_MAX_RUNS: Final = 1000
"""Restarts of a container that are followed until one succeeds."""
MAX_SAMPLES: Final = 2000
"""Moments in the answer; of more, the last of each interval is kept."""


class SimulationError(ValueError):
    """An annotation cannot be understood."""


class PlacedPod(ApiObject, frozen=True):
    """A pod that got a node."""

    pod: str = always(str)
    node: str = always(str)
    devices: tuple[str, ...] = always(tuple)
    """As `request: driver/pool/device`."""
    alternatives: str = ""
    at_seconds: float = 0.0
    waited_seconds: float = 0.0
    waits_for_devices: bool = False
    """Whether its devices must be made ready first (KEP-5007)."""


class PendingPod(ApiObject, frozen=True):
    """A pod that has no node at the end."""

    pod: str = always(str)
    reason: str = always(str)


class Sample(ApiObject, frozen=True):
    """The cluster at one moment."""

    seconds: float = always(float)
    running: int = always(int)
    waiting: int = always(int)
    utilisation: float = always(float)
    fragmentation: float = always(float)


class SimulationFigures(ApiObject, frozen=True):
    """A simulation in numbers; averages are over time."""

    pods_placed: int = always(int)
    pods_pending: int = always(int)
    pods_finished: int = always(int)
    preemptions: int = always(int)
    seconds: float = always(float)
    """From the beginning to the last event."""
    mean_utilisation: float = always(float)
    peak_utilisation: float = always(float)
    mean_fragmentation: float = always(float)
    mean_waiting: float = always(float)
    peak_waiting: int = always(int)
    median_wait_seconds: float = always(float)
    p99_wait_seconds: float = always(float)
    longest_wait_seconds: float = always(float)


class SimulationAnswer(ApiObject, frozen=True):
    """Placements, what stays pending and why, and figures."""

    placed: tuple[PlacedPod, ...] = always(tuple)
    pending: tuple[PendingPod, ...] = always(tuple)
    figures: SimulationFigures = always(SimulationFigures)
    timeline: tuple[Sample, ...] = always(tuple)
    """Of a simulation in virtual time."""
    notes: tuple[str, ...] = ()


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
            figures=_figures(self._samples, self._waits, len(pending), self._finished, preempted),
            timeline=tuple(_thinned(self._samples)) if self._has_time else (),
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


# --- figures ---


def _figures(
    samples: list[Sample], waits: list[float], pending: int, finished: int, preempted: int
) -> SimulationFigures:
    ordered = sorted(waits)
    return SimulationFigures(
        pods_placed=len(waits),
        pods_pending=pending,
        pods_finished=finished,
        preemptions=preempted,
        seconds=samples[-1].seconds if samples else 0.0,
        mean_utilisation=_mean(samples, lambda each: each.utilisation),
        peak_utilisation=max((each.utilisation for each in samples), default=0.0),
        mean_fragmentation=_mean(samples, lambda each: each.fragmentation),
        mean_waiting=_mean(samples, lambda each: each.waiting),
        peak_waiting=max((each.waiting for each in samples), default=0),
        median_wait_seconds=_percentile(ordered, 0.5),
        p99_wait_seconds=_percentile(ordered, 0.99),
        longest_wait_seconds=ordered[-1] if ordered else 0.0,
    )


def _mean(samples: list[Sample], value: Callable[[Sample], float]) -> float:
    """The average over time; of a single moment, its value."""
    total = 0.0
    for sample, following in pairwise(samples):
        total += value(sample) * (following.seconds - sample.seconds)
    seconds = samples[-1].seconds - samples[0].seconds if samples else 0.0
    if not seconds:
        return round(value(samples[-1]), 4) if samples else 0.0
    return round(total / seconds, 4)


def _percentile(ordered: list[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def _thinned(samples: list[Sample]) -> Iterator[Sample]:
    """At most `MAX_SAMPLES`, evenly over the time."""
    if len(samples) <= MAX_SAMPLES:
        yield from samples
        return
    width = (samples[-1].seconds - samples[0].seconds) / MAX_SAMPLES
    interval = -1
    kept: Sample | None = None
    for sample in samples:
        number = int((sample.seconds - samples[0].seconds) / width)
        if kept is not None and number != interval:
            yield kept
        interval, kept = number, sample
    if kept is not None:
        yield kept


def documents(objects: Snapshot) -> Iterable[dict[str, Any]]:
    """All objects as manifests, which `allot simulate -f` takes again."""
    for resource in KINDS:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        for obj in objects.of(resource):
            if isinstance(obj, RawObject):
                yield {**obj.data, **head}
            else:
                yield {**head, **msgspec.to_builtins(obj, enc_hook=to_builtin, str_keys=True)}
