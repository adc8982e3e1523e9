"""How many more pods fit: exactly as many as would be placed if they were created one after the other.

Pods whose fit on a node depends on that node alone are counted node by node, and nodes in the same state are counted
once. All others (affinity between pods, spreading, shared claims, devices of several nodes, volumes) are scheduled one
after the other. Nothing is preempted. Pending pods of the cluster that fit get their places first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace as replaced
from typing import Final, NamedTuple

from allot.allocation import chosen_alternatives
from allot.api.base import ApiObject, always, replace
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.cluster_model import ClusterModel
from allot.questions.new_pods import missing_template
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.obstacles import obstacle
from allot.questions.placements import Placement
from allot.questions.pod_templates import PodTemplate, claim_templates_into
from allot.questions.scheduling_simulator import SchedulingSimulator
from allot.scheduler.framework.status import Status
from allot.scheduler.plugins.registry import IN_TREE
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MAX_COPIES: Final = 1_000_000
"""Pods without any request fit without an end, were it not for the number of pods of a node."""
_IN_TREE: Final = frozenset(spec.name for spec in IN_TREE)


class FitItem(NamedTuple):
    """A pod of the question, and how many of it belong together."""

    template: PodTemplate
    weight: int = 1


class NodeLimit(ApiObject, frozen=True):
    """What runs out on some nodes, and so ends the count."""

    reason: str = always(str)
    nodes: int = always(int)
    example: str = always(str)
    """One of these nodes."""
    detail: str = ""
    """The values behind the reason on that node."""


class FitCount(ApiObject, frozen=True):
    """One pod of the question."""

    name: str = always(str)
    pods: int = always(int)
    workloads: int | None = None
    """How many whole workloads of its size that is."""
    nodes: dict[str, int] = always(dict)
    """Pods by node."""
    alternatives: dict[str, int] = always(dict)
    """How many pods got which alternatives of their requests."""


class FitAnswer(ApiObject, frozen=True):
    """How many more pods fit, where, and what runs out first."""

    rounds: int = always(int)
    """How many more of the pod; of a mix, how many times all of it."""
    is_limited: bool = always(bool)
    """Whether the count ended at the limit of the question, and more may fit."""
    items: tuple[FitCount, ...] = always(tuple)
    runs_out: tuple[NodeLimit, ...] = always(tuple)
    """Why no further pod fits: the reason of most nodes first."""
    blocked_by: str = ""
    """The pod of a mix that does not fit any more."""
    quota: str = ""
    """The quota that ends the count, as the API server says it."""
    placed_before: int = 0
    """Pending pods that got their places first."""
    notes: tuple[str, ...] = ()


class _Tally:
    """What was placed for one item."""

    def __init__(self) -> None:
        self.pods = 0
        self.nodes: Counter[str] = Counter()
        self.alternatives: Counter[str] = Counter()

    def add(self, placement: Placement, node_names: Sequence[str]) -> None:
        """The placement, and equal ones on other nodes in the same state."""
        self.pods += len(node_names)
        self.nodes.update(node_names)
        text = alternatives_text(placement)
        if text:
            self.alternatives[text] += len(node_names)


def alternatives_text(placement: Placement) -> str:
    """The alternatives that the requests of a pod got; empty if none has alternatives."""
    chosen = (
        f"{each.request}/{each.subrequest}"
        for claim in placement.claims
        if claim.status.allocation is not None
        for each in chosen_alternatives(claim, claim.status.allocation)
    )
    return ", ".join(chosen)


def fit(
    cluster: ObservedCluster,
    items: Sequence[FitItem],
    brought: Snapshot | None = None,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> FitAnswer:
    """How many more of the items fit; at most `limit`. `brought` are objects that their manifests bring along."""
    if brought is not None:
        cluster = replaced(cluster, objects=claim_templates_into(cluster.objects, brought))
    most = MAX_COPIES if limit is None else limit
    model, before = _settled(cluster)
    answer = _Count(model, items, most).by_node()
    if answer is None:
        model, before = _settled(cluster)
        answer = _Count(model, items, most, progress).one_by_one()
    missing = filter(None, (missing_template(each.template.pod, cluster.objects) for each in items))
    if reason := next(missing, ""):
        limit_ = NodeLimit(reason, len(cluster.objects.of(resources.NODES)), "")
        answer = replace(answer, runs_out=(limit_,))
    return replace(answer, notes=cluster.notes, placed_before=before)


def _settled(cluster: ObservedCluster) -> tuple[ClusterModel, int]:
    """The cluster when all pending pods that fit have their places, and how many these are."""
    model = ClusterModel(cluster)
    model.settle()
    model.scheduler.preempts = False
    model.scheduler.stop_waiting()  # what does not fit now does not fit with more pods either
    return model, len(model.placements)


class _Count:
    """One way to count, on a settled cluster."""

    def __init__(
        self,
        model: ClusterModel,
        items: Sequence[FitItem],
        limit: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._model = model
        self._scheduler: SchedulingSimulator = model.scheduler
        self._items = items
        self.limit = limit
        self._progress = progress
        self._tallies = [_Tally() for _ in items]
        self._made = 0

    # --- one after the other ---

    def one_by_one(self) -> FitAnswer:
        """Create and schedule pod after pod until one does not fit."""
        rounds, quota, blocked = 0, "", ""
        runs_out: tuple[NodeLimit, ...] = ()
        while rounds < self.limit and not blocked:
            for item, tally in zip(self._items, self._tallies, strict=True):
                for _ in range(item.weight):
                    quota, placed = self._create_and_schedule(item)
                    if placed is None:
                        blocked = item.template.name
                        runs_out = () if quota else self._limits_of_last()
                        break
                    tally.add(placed, [placed.node_name])
                if blocked:
                    break
            else:
                rounds += 1
                if self._progress is not None and not rounds % 200:
                    self._progress(rounds)
        return self._answer(rounds, runs_out, quota, blocked)

    def _create_and_schedule(self, item: FitItem) -> tuple[str, Placement | None]:
        """The quota that refuses the pod, or its placement; neither if no node fits."""
        key, refusal = self._create(item)
        if refusal:
            return refusal, None
        before = len(self._model.placements)
        self._scheduler.schedule_all()
        placed = self._model.placements[before:]
        if placed and placed[-1].pod.key == key:
            return "", placed[-1]
        self._failed = key
        return "", None

    def _create(self, item: FitItem) -> tuple[ObjectKey, str]:
        """A copy of the item's pod, in the queue; or the quota that refuses it."""
        self._made += 1
        pod = item.template.pod
        name = f"{pod.key.name}-fit-{self._made}"
        metadata = {**pod.get("metadata", default={}), "name": name}
        copy = Pod({**pod.data, "metadata": metadata})
        key = ObjectKey(pod.key.namespace or "default", name)
        return key, self._model.create_pod(copy)

    def _limits_of_last(self) -> tuple[NodeLimit, ...]:
        """Why no node takes the last pod."""
        pod = self._model.objects.get(resources.PODS, self._failed)
        assert pod is not None
        info = PodInfo.of(pod)
        failure = self._scheduler.failures.get(info.uid)
        statuses = failure.statuses if failure is not None else None
        by_reason: dict[str, list[str]] = {}
        if isinstance(statuses, dict):
            for node, status in sorted(statuses.items()):
                by_reason.setdefault(status.message, []).append(node)
        if not by_reason:
            message = self._model.why_waiting(info)
            return (NodeLimit(message, len(self._scheduler.cluster), ""),)
        return _limits(
            NodeLimit(reason, len(nodes), nodes[0], self._detail(info, nodes[0]))
            for reason, nodes in by_reason.items()
        )

    def _detail(self, pod: PodInfo, node: str) -> str:
        found = self._scheduler.status_on(pod, node)
        return obstacle(found) if found is not None else ""

    # --- node by node ---

    def by_node(self) -> FitAnswer | None:
        """Fill each kind of node; None if nodes depend on each other, or the limit or a quota ends the count."""
        if len(self._items) != 1 or self._has_shared_state():
            return None
        item, tally = self._items[0], self._tallies[0]
        groups = self._groups(item)
        if groups is None:
            return None
        limits: list[NodeLimit] = []
        for names in groups:
            while True:
                key, refusal = self._create(item)
                if refusal:
                    return None
                pod = self._scheduler.queue.find(f"Pod/{key}")
                if pod is None:
                    return None
                placed = self._scheduler.place_on(pod.pod, names[0])
                if placed is None:
                    return None
                if isinstance(placed, Status):
                    detail = self._detail(pod.pod, names[0])
                    limits.append(NodeLimit(placed.message, len(names), names[0], detail))
                    self._model.delete_pod(pod.pod.pod)
                    break
                tally.add(placed, names)
                if tally.pods > self.limit:
                    return None
        if not self._quota_allows(item, tally.pods):
            return None
        return self._answer(tally.pods, _limits(limits), "", item.template.name)

    def _has_shared_state(self) -> bool:
        """Whether pods on different nodes compete for something."""
        slices = self._model.objects.of(resources.RESOURCE_SLICES)
        if any(not slice_.spec.node_name for slice_ in slices):
            return True
        pod = self._items[0].template.pod
        claims = pod.get("spec", "resourceClaims", default=())
        return any(entry.get("resourceClaimName") for entry in claims)

    def _groups(self, item: FitItem) -> list[list[str]] | None:
        """The nodes by state: equal nodes take equal numbers of pods; None if that cannot be told."""
        key, refusal = self._create(item)
        queued = self._scheduler.queue.find(f"Pod/{key}")
        if refusal or queued is None:
            return None
        pod, found = queued.pod, self._fits(queued.pod)
        if found is not None:
            profile = self._scheduler.profile_of(pod)
            is_known = all(plugin.name in _IN_TREE for plugin in profile.filter)
            groups: dict[Hashable, list[str]] = {}
            for node, status in found:
                group = self._state_of(node, status) if is_known else node.name
                groups.setdefault(group, []).append(node.name)
        self._model.delete_pod(pod.pod)
        return None if found is None else list(groups.values())

    def _fits(self, pod: PodInfo) -> list[tuple[NodeInfo, str]] | None:
        """Each node with the reason why it rejects the first pod, empty if it fits."""
        found = []
        for node in self._scheduler.cluster.nodes:
            status = self._scheduler.fits_on(pod, node.name)
            if status is None:
                return None
            found.append((node, "" if status.is_success else status.message))
        return found

    def _state_of(self, node: NodeInfo, status: str) -> Hashable:
        """Equal for nodes that take equally many pods, for the same reasons."""
        devices, ledger = self._scheduler.devices, self._scheduler.claims.ledger
        node_class = devices.node_equivalence_class(devices.target(node), ledger)
        return (
            node.name if node_class is None else node_class,
            status,
            node.allocatable_milli_cpu,
            node.allocatable_memory,
            node.allocatable_ephemeral_storage,
            tuple(sorted(node.allocatable_scalars.items())),
            node.requested_milli_cpu,
            node.requested_memory,
            node.requested_ephemeral_storage,
            tuple(sorted(node.requested_scalars.items())),
            node.max_pods - len(node.pods),
            frozenset(node.used_ports),
        )

    def _quota_allows(self, item: FitItem, pods: int) -> bool:
        """Whether no quota of the namespace ends the count before."""
        namespace = item.template.pod.key.namespace or "default"
        quotas = self._model.objects.of(resources.RESOURCE_QUOTAS)
        return pods == 0 or all(quota.metadata.namespace != namespace for quota in quotas)

    # --- the answer ---

    def _answer(
        self, rounds: int, runs_out: tuple[NodeLimit, ...], quota: str, blocked: str
    ) -> FitAnswer:
        is_limited = not blocked
        counts = []
        for item, tally in zip(self._items, self._tallies, strict=True):
            size = item.template.replicas
            is_pod = item.template.name.startswith("pod/")
            counts.append(
                FitCount(
                    name=item.template.name,
                    pods=tally.pods,
                    workloads=None if is_pod or not size else tally.pods // size,
                    nodes=dict(sorted(tally.nodes.items())),
                    alternatives=dict(tally.alternatives.most_common()),
                )
            )
        shown = blocked if len(self._items) > 1 else ""
        return FitAnswer(rounds, is_limited, tuple(counts), runs_out, shown, quota)


def _limits(limits: Iterable[NodeLimit]) -> tuple[NodeLimit, ...]:
    """The reason of most nodes first; equal reasons together."""
    merged: dict[str, NodeLimit] = {}
    for each in limits:
        known = merged.get(each.reason)
        merged[each.reason] = (
            each
            if known is None
            else NodeLimit(each.reason, known.nodes + each.nodes, known.example, known.detail)
        )
    return tuple(sorted(merged.values(), key=lambda each: (-each.nodes, each.reason)))
