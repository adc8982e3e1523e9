"""All pending pods, grouped by cause, and what would help most of them.

Pods that are equal for the scheduler are explained once. The cause is that of `allot explain`, without the names that
differ from pod to pod.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from allot.api.base import ApiObject, always, replace
from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.selectors import LabelSelector
from allot.client import resources
from allot.controllers.workloads.accessors import uid_of
from allot.controllers.workloads.ownership import controller_of
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.obstacles import counted_reasons, obstacle
from allot.questions.pod_owners import PodOwners
from allot.scheduler.core.decisions import Chosen, CycleError
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.explanations import PodExplanation, PodState
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.obstructed_claims import obstacles_of
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.plugins.dynamic_resources.pod_claims import claim_keys
from allot.scheduler.state.pods import PodInfo

MAX_EXPLAINED: Final = 25
"""So many kinds of pods are explained in detail, those of most pods first."""
MAX_NAMES: Final = 5
WAITS_FOR_SCHEDULER: Final = "fits, and waits for its scheduler"


class PendingCause(ApiObject, frozen=True):
    """Pods that are pending for the same reason."""

    cause: str = always(str)
    pods: int = always(int)
    owners: dict[str, int] = always(dict)
    """Pods by the workload that they belong to, or by their own name."""
    example: str = always(str)
    """One of the pods, to be explained in detail."""
    state: PodState = always(lambda: PodState.DOES_NOT_FIT)
    helps: tuple[str, ...] = ()
    """Changes after which the example fits. Each was tried."""


class Help(ApiObject, frozen=True):
    """A change that would help pods of several groups, each of them alone."""

    change: str = always(str)
    pods: int = always(int)


class PendingPods(ApiObject, frozen=True):
    """The answer: the cause of most pods first."""

    pods: int = always(int)
    causes: tuple[PendingCause, ...] = always(tuple)
    helps: tuple[Help, ...] = always(tuple)
    """What would help most pods, the most helpful first."""
    notes: tuple[str, ...] = ()


class PodSelection(NamedTuple):
    """Which pending pods; None: all."""

    namespace: str | None = None
    labels: LabelSelector | None = None
    owner_uids: frozenset[str] | None = None
    """Only pods that one of these workloads controls."""

    def takes(self, pod: Pod) -> bool:
        if pod.node_name or pod.is_finished or pod.metadata.deletion_timestamp is not None:
            return False
        if self.namespace is not None and pod.key.namespace != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(pod.metadata.labels):
            return False
        if self.owner_uids is None:
            return True
        controller = controller_of(pod)
        return controller is not None and controller.uid in self.owner_uids


def owned_by(cluster: ObservedCluster, workload: RawObject) -> frozenset[str]:
    """The uids of a workload and of the ReplicaSets that it controls."""
    uid = uid_of(workload)
    sets = (
        uid_of(each)
        for each in cluster.objects.of(resources.REPLICA_SETS)
        if (controller := controller_of(each)) is not None and controller.uid == uid
    )
    return frozenset((uid, *sets))


def pending_pods(
    cluster: ObservedCluster,
    selection: PodSelection = PodSelection(),  # noqa: B008 - a value
    effort: Effort = Effort(nodes=50, proposal_nodes=1),  # noqa: B008 - a value
    is_over: Callable[[], bool] = lambda: False,
) -> PendingPods:
    """The pending pods by cause. After `is_over` kinds of pods are explained by the scheduler's message alone."""
    model = StaticScheduler(
        cluster.objects, cluster.configuration, cluster.gates, lambda: cluster.now
    )
    explainer = _Explainer(model, effort)
    kinds: dict[Hashable, list[PodInfo]] = {}
    for pod in cluster.objects.of(resources.PODS):
        if selection.takes(pod):
            info = model.pods[pod.key]
            kinds.setdefault(explainer.kind_of(info), []).append(info)
    owners = PodOwners(cluster.objects)
    found: dict[str, PendingCause] = {}
    by_size = sorted(kinds.values(), key=lambda members: (-len(members), members[0].key))
    for number, members in enumerate(by_size):
        in_detail = number < MAX_EXPLAINED and not is_over()
        group = explainer.cause(members[0], in_detail=in_detail)
        names: dict[str, int] = {}
        for member in members:
            name = owners.name_of(member.pod)
            names[name] = names.get(name, 0) + 1
        group = replace(group, pods=len(members), owners=names)
        found[group.cause] = _merged(found.get(group.cause), group)
    causes = sorted(found.values(), key=lambda each: (-each.pods, each.cause))
    return PendingPods(
        pods=sum(each.pods for each in causes),
        causes=tuple(replace(each, owners=_most_first(each.owners)) for each in causes),
        helps=tuple(_helps(causes)),
        notes=cluster.notes,
    )


GATED: Final = "SchedulingGates"
NO_CLAIM: Final = "ResourceClaimMissing"
FITS: Final = "Fits"
FAILED: Final = "Error"
NO_NODE: Final = "NoNodes"
UNDECIDED: Final = "Undecided"
"""Causes beside the names of plugins."""


def pods_by_cause(
    model: StaticScheduler,
    pods: Iterable[Pod],
    is_over: Callable[[], bool] = lambda: False,
) -> dict[str, list[PodInfo]]:
    """The pending ones of these pods by cause: the plugin that rejects the nodes which come closest, or why none is asked.

    After `is_over` the rest is undecided.
    """
    explainer = _Explainer(model, Effort(nodes=1, proposal_nodes=0))
    known: dict[Hashable, str] = {}
    found: dict[str, list[PodInfo]] = {}
    selection = PodSelection()
    for pod in pods:
        if not selection.takes(pod):
            continue
        info = model.pods[pod.key]
        kind = explainer.kind_of(info)
        if kind not in known:
            known[kind] = UNDECIDED if is_over() else explainer.plugin_of(info)
        found.setdefault(known[kind], []).append(info)
    return found


def _merged(known: PendingCause | None, group: PendingCause) -> PendingCause:
    if known is None:
        return group
    owners = dict(known.owners)
    for name, number in group.owners.items():
        owners[name] = owners.get(name, 0) + number
    helps = tuple(dict.fromkeys((*known.helps, *group.helps)))
    return replace(known, pods=known.pods + group.pods, owners=owners, helps=helps)


def _most_first(owners: dict[str, int]) -> dict[str, int]:
    return dict(sorted(owners.items(), key=lambda each: (-each[1], each[0])))


def _helps(causes: Iterable[PendingCause]) -> Iterator[Help]:
    total: dict[str, int] = {}
    for cause in causes:
        for change in cause.helps:
            total[change] = total.get(change, 0) + cause.pods
    ordered = sorted(total.items(), key=lambda each: (-each[1], each[0]))
    return (Help(change, pods) for change, pods in ordered)


class _Explainer:
    """Explains one pod of each kind."""

    def __init__(self, model: StaticScheduler, effort: Effort) -> None:
        self._model = model
        self._objects = ObjectExplainer(model, effort)
        self._cycles = {
            name: SchedulingCycle(profile, model.cluster)
            for name, profile in model.profiles.items()
        }
        self._encoder = msgspec.json.Encoder()
        self._specs: dict[int, tuple[object, bytes]] = {}

    def kind_of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that get the same explanation."""
        spec = pod.pod.data.get("spec")
        known = self._specs.get(id(spec))
        if known is None:
            known = self._specs[id(spec)] = spec, self._encoder.encode(spec)
        claims = tuple(map(self._claim_kind, claim_keys(pod)))
        made = len(pod.claim_statuses[0] or ()) if pod.claims else 0
        labels = tuple(sorted(pod.labels.items())) if _looks_at_pods(pod) else ()
        return pod.namespace, known[1], claims, made, labels, pod.nominated_node_name

    def _claim_kind(self, key: Hashable) -> Hashable:
        """Claims that are not allocated yet are equal if their specs are."""
        claim = self._model.claims.get(key)  # type: ignore[arg-type]
        if claim is None:
            return "missing"
        if claim.status.allocation is not None or claim.metadata.deletion_timestamp is not None:
            return claim.key
        return msgspec.json.encode(claim.spec, enc_hook=str)

    def cause(self, pod: PodInfo, *, in_detail: bool) -> PendingCause:
        if in_detail:
            return _cause_of(self._objects.of_pod(pod), pod)
        example = PendingCause(example=str(pod.key))
        if pod.scheduling_gates:
            gates = ", ".join(pod.scheduling_gates)
            return replace(example, cause=f"it has scheduling gates: {gates}", state=PodState.GATED)
        if any(True for _ in obstacles_of(pod, self._model, ())):
            return _cause_of(self._objects.of_pod(pod), pod)
        return self._decided(pod, example)

    def plugin_of(self, pod: PodInfo) -> str:
        """The last of the plugins, in their order, that rejects a node."""
        if pod.scheduling_gates:
            return GATED
        if any(True for _ in obstacles_of(pod, self._model, ())):
            return NO_CLAIM
        name = self._profile_of(pod)
        decision = self._cycles[name].decide(pod)
        if isinstance(decision, Chosen):
            return FITS
        if isinstance(decision, CycleError):
            return FAILED
        if not len(self._model.cluster):
            return NO_NODE
        order = [plugin.name for plugin in self._model.profiles[name].filter]
        rejecting = decision.statuses.plugins or decision.rejected_by
        return max(rejecting, key=lambda each: (order.index(each) if each in order else -1, each))

    def _profile_of(self, pod: PodInfo) -> str:
        if pod.scheduler_name in self._cycles:
            return pod.scheduler_name
        return next(iter(self._cycles))

    def _decided(self, pod: PodInfo, example: PendingCause) -> PendingCause:
        """The scheduler's message, without a search for what would help."""
        decision = self._cycles[self._profile_of(pod)].decide(pod)
        if isinstance(decision, Chosen):
            return replace(example, cause=WAITS_FOR_SCHEDULER, state=PodState.FITS)
        if isinstance(decision, CycleError):
            return replace(example, cause=decision.status.message, state=PodState.FAILED)
        return replace(example, cause=decision.message(len(self._model.cluster)))


def _cause_of(found: PodExplanation, pod: PodInfo) -> PendingCause:
    names = [claim.claim for claim in found.claims]
    cause = found.reason
    if found.state is PodState.DOES_NOT_FIT and found.nodes:
        nearest = obstacle(found.nodes[0])
        cause = f"{counted_reasons(found.nodes)}; nearest: {nearest}"
    if found.state is PodState.FITS:
        cause = WAITS_FOR_SCHEDULER
    elif found.state is PodState.WAITING_FOR_DEVICES and not cause:
        cause = "waits for its devices to become ready"
    helps = dict.fromkeys(without_names(each.change, pod, names) for each in found.proposals)
    return PendingCause(
        cause=without_names(cause or found.verdict, pod, names),
        example=str(pod.key),
        state=found.state,
        helps=tuple(helps),
    )


def without_names(text: str, pod: PodInfo, claims: Iterable[str]) -> str:
    """The text without the names of the pod and its claims, so that it is the same for equal pods."""
    for claim in claims:
        own = re.escape(claim)
        text = re.sub(rf" of claim {own}(?![\w-])", "", text)
        text = re.sub(rf"(?<![\w-])(?:[Cc]laim )?{own}(?![\w-])", "its claim", text)
    text = re.sub(rf"(?<![\w-])[Pp]od {re.escape(str(pod.key))}(?![\w-])", "it", text)
    return text.replace("its claim, request", "request")


def _looks_at_pods(pod: PodInfo) -> bool:
    """Whether other pods' labels matter to it, so that its own may differ."""
    return bool(pod.has_affinity or pod.spread_constraints)
