"""What changes would do to all pods of a cluster: who starts, who is evicted, who finds no place, and why.

The cluster settles first: what starts or waits by itself is no effect of the changes. Then the changes are made in
order, the cluster settles after each, and the pods before and after are compared. A pod that its workload replaces
is one that moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from allot.api.base import ApiObject, always
from allot.api.core import Pod
from allot.client import resources
from allot.controllers.workloads.ownership import controller_of
from allot.questions.changes import Change
from allot.questions.cluster_model import ClusterModel
from allot.questions.device_usage import UsageFigures
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.obstacles import node_with_most_specific_reason, obstacle
from allot.scheduler.explain.explanations import NodeExplanation
from allot.scheduler.state.pods import PodInfo


class Effect(StrEnum):
    """What happens to a pod."""

    STARTS = "starts"
    """It had no node, and gets one."""
    MOVES = "moves"
    """It is replaced by its workload, on another node."""
    RESTARTS = "restarts"
    """It is replaced by its workload, on the same node."""
    EVICTED = "evicted"
    """It loses its node, and no other pod replaces it."""
    WAITS = "waits"
    """It is new or was evicted, and finds no place."""
    ENDS = "ends"
    """It was pending, and is deleted."""


class PodEffect(ApiObject, frozen=True):
    """A pod to which something happens."""

    pod: str = always(str)
    effect: Effect = always(lambda: Effect.STARTS)
    before: str = ""
    """The node before."""
    after: str = ""
    """The node after."""
    reason: str = ""
    """Why it is evicted, or finds no place."""
    replaces: str = ""
    """The pod that it replaces."""


class WhatIfAnswer(ApiObject, frozen=True):
    """The difference that the changes make."""

    changes: tuple[str, ...] = always(tuple)
    effects: tuple[PodEffect, ...] = always(tuple)
    counts: dict[str, int] = always(dict)
    """Pods by effect."""
    running_before: int = always(int)
    running_after: int = always(int)
    waiting_before: int = always(int)
    waiting_after: int = always(int)
    devices_before: UsageFigures = always(UsageFigures)
    devices_after: UsageFigures = always(UsageFigures)
    notes: tuple[str, ...] = ()


class _State(NamedTuple):
    """The pods at one moment: nodes by key, and which of them wait."""

    pods: dict[str, Pod]
    usage: UsageFigures

    @property
    def running(self) -> int:
        return sum(bool(pod.node_name) for pod in self.pods.values())


def what_if(
    cluster: ObservedCluster,
    changes: Sequence[Change],
    progress: Callable[[int], None] | None = None,
) -> WhatIfAnswer:
    """The effects of the changes, made in order; `ChangeError` if one cannot be made."""
    return carried_out(cluster, changes, progress)[0]


def carried_out(
    cluster: ObservedCluster,
    changes: Sequence[Change],
    progress: Callable[[int], None] | None = None,
) -> tuple[WhatIfAnswer, ClusterModel]:
    """The effects of the changes, and the cluster after them."""
    model = ClusterModel(cluster)
    model.settle(progress)
    before = _state(model)
    model.evictions.clear()
    notes: list[str] = list(cluster.notes)
    for change in changes:
        notes += change.apply(model)
        model.settle(progress)
    after = _state(model)
    effects = sorted(
        _effects(model, before, after), key=lambda each: (_ORDER[each.effect], each.pod)
    )
    counts = {
        effect.value: number
        for effect in Effect
        if (number := sum(each.effect is effect for each in effects))
    }
    refused = (
        f"{kind.lower()}/{key.name} cannot create all of its pods: {why}"
        for (kind, key), why in model.workloads.refused.items()
    )
    answer = WhatIfAnswer(
        changes=tuple(change.text for change in changes),
        effects=tuple(effects),
        counts=counts,
        running_before=before.running,
        running_after=after.running,
        waiting_before=len(before.pods) - before.running,
        waiting_after=len(after.pods) - after.running,
        devices_before=before.usage,
        devices_after=after.usage,
        notes=(*notes, *refused),
    )
    return answer, model


_ORDER = {effect: number for number, effect in enumerate(Effect)}


def _state(model: ClusterModel) -> _State:
    pods = {
        f"{pod.key}#{pod.metadata.uid}": pod
        for pod in model.objects.of(resources.PODS)
        if not pod.is_finished
    }
    return _State(pods, model.usage.figures())


def _effects(model: ClusterModel, before: _State, after: _State) -> Iterable[PodEffect]:
    survivors = before.pods.keys() & after.pods.keys()
    gone = [pod for name, pod in before.pods.items() if name not in survivors]
    new = [pod for name, pod in after.pods.items() if name not in survivors]
    for name in survivors:
        was, is_ = before.pods[name], after.pods[name]
        if is_.node_name and not was.node_name:
            yield PodEffect(str(is_.key), Effect.STARTS, after=is_.node_name)
    replaced = _Replacements(gone)
    for pod in sorted(new, key=lambda pod: (not pod.node_name, pod.key)):
        old = replaced.take(pod)
        yield _effect_of_new(model, pod, old)
    for old in replaced.left():
        if old.node_name:
            reason = model.evictions.get(_uid(old), "deleted")
            yield PodEffect(str(old.key), Effect.EVICTED, before=old.node_name, reason=reason)
        else:
            yield PodEffect(str(old.key), Effect.ENDS)


def _effect_of_new(model: ClusterModel, pod: Pod, old: Pod | None) -> PodEffect:
    name = str(pod.key)
    before = old.node_name if old is not None else ""
    evicted = model.evictions.get(_uid(old), "") if old is not None else ""
    replaces = str(old.key) if old is not None and old.key != pod.key else ""
    if not pod.node_name:
        return PodEffect(
            name, Effect.WAITS, before=before, reason=why_waiting(model, pod), replaces=replaces
        )
    effect = Effect.STARTS
    if before:
        effect = Effect.RESTARTS if pod.node_name == before else Effect.MOVES
    return PodEffect(name, effect, before, pod.node_name, evicted, replaces)


def why_waiting(model: ClusterModel, pod: Pod) -> str:
    """Why a pod has no node, in one line: the nearest obstacle, or the scheduler's message."""
    info = PodInfo.of(pod)
    message = model.why_waiting(info)
    failure = model.scheduler.failures.get(info.uid)
    if failure is None or not isinstance(failure.statuses, dict) or not failure.statuses:
        return message
    node = node_with_most_specific_reason(failure.statuses)
    found: NodeExplanation | None = model.explained_once(failure, node)
    text = short_message(message)
    return f"{text}; on {node}: {obstacle(found)}" if found is not None else text


def short_message(message: str) -> str:
    """A message of the scheduler without the number of nodes, and without what preemption says."""
    text = message.partition(" preemption: ")[0].rstrip(".")
    return text.partition("nodes are available: ")[2] or text


class _Replacements:
    """Pods that are gone, by their workload, for new pods to replace them."""

    def __init__(self, gone: Iterable[Pod]) -> None:
        self._by_owner: dict[tuple[str, ...], list[Pod]] = {}
        for pod in gone:
            self._by_owner.setdefault(_owner(pod), []).append(pod)

    def take(self, pod: Pod) -> Pod | None:
        """The pod that is replaced: of the same name, or of the same workload."""
        candidates = self._by_owner.get(_owner(pod), [])
        same = [old for old in candidates if old.key == pod.key] or [
            old for old in candidates if old.node_name
        ]
        if not same:
            return None
        candidates.remove(same[0])
        return same[0]

    def left(self) -> list[Pod]:
        found = [pod for pods in self._by_owner.values() for pod in pods]
        return sorted(found, key=lambda pod: pod.key)


def _owner(pod: Pod) -> tuple[str, ...]:
    controller = controller_of(pod)
    return (str(pod.key),) if controller is None else (controller.kind, controller.uid)


def _uid(pod: Pod) -> str:
    return str(pod.data["metadata"].get("uid") or "")
