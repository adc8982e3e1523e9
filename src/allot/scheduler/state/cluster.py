"""ClusterState: all nodes and all assigned or assumed pods, updated by each event.

A pod counts for its node as soon as the scheduler decides (`assume_pod`), before the API server
confirms it (`set_pod`). An assumed pod stays until it is confirmed, forgotten or deleted.

    assume_pod ──► assumed ──► set_pod ──► confirmed ──► remove_pod
                      └─────► forget_pod

The cost of an event depends on what it changes, not on the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final

from allot.scheduler.state.matching_pods import MatchingPods, PodQuery
from allot.scheduler.state.node_order import ZoneOrder
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.nominations import Nominations
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.term_index import TermIndex

_NO_LABELS: Final[Mapping[str, str]] = {}


class Trait(Enum):
    """What some clusters have and others have not. Changes rarely."""

    __hash__ = (
        object.__hash__
    )  # that of enums is a function in Python, and sets of these are compared for every pod

    BLOCKING_TAINTS = auto()
    SOFT_TAINTS = auto()
    UNSCHEDULABLE_NODES = auto()
    IMAGES = auto()
    """Nodes tell which images they have."""
    POD_AFFINITY = auto()
    """Assigned pods have affinity to others, required or preferred, or prefer to be apart."""
    POD_ANTI_AFFINITY = auto()
    """Assigned pods must be apart from others."""


class ClusterState:
    """The live view that a scheduling cycle decides on."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}  # most recently changed last
        self._order: ZoneOrder[NodeInfo] = ZoneOrder()
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._matching_pods = MatchingPods()
        self.nominations = Nominations(self._pods.__contains__)
        self.membership = 0
        """Changes when nodes are added, removed or reordered."""
        self.terms = TermIndex()
        self.namespace_labels: dict[str, Mapping[str, str]] = {}
        self.nodes_by_image: dict[str, int] = {}
        """Number of nodes that have an image, by normalised name."""
        self.volume_claim_uses: dict[tuple[str, str], int] = {}
        """Number of pods that use a PersistentVolumeClaim, by namespace and name."""
        self.nodes_with_blocking_taints = 0
        self.nodes_with_soft_taints = 0
        self.unschedulable_nodes = 0
        self.traits: frozenset[Trait] = frozenset()

    # --- nodes ---

    @property
    def nodes(self) -> list[NodeInfo]:
        """All nodes, alternating between zones. Do not modify the list."""
        return self._order.items()

    def node(self, name: str) -> NodeInfo | None:
        node = self._nodes.get(name)
        return None if node is None or node.facts is None else node

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    def sizes(self) -> Mapping[str, int]:
        """The number of objects by kind, for the metric `scheduler_cache_size`."""
        return {
            "nodes": len(self._nodes),
            "pods": len(self._pods),
            "assumed_pods": len(self._assumed),
        }

    def __bool__(self) -> bool:
        return True  # a cluster without nodes is still a cluster

    @property
    def generation(self) -> int:
        """The generation of the node that changed last."""
        return next(reversed(self._nodes.values())).generation if self._nodes else 0

    def nodes_changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """Nodes with a later generation, the latest first. Removed nodes are not included."""
        for node in reversed(self._nodes.values()):
            if node.generation <= generation:
                return
            if node.facts is not None:
                yield node

    def set_node(self, facts: NodeFacts) -> NodeFacts | None:
        """Add or update a node. Returns its previous facts."""
        node = self._nodes.get(facts.name)
        if node is None:
            node = NodeInfo(facts.name)
        before = node.facts
        if before is not None and before.is_equivalent(facts):
            node.facts = facts
            return before
        if before is None:
            self._order.add(facts.zone, facts.name, node)
            self.membership += 1
        elif before.zone != facts.zone:
            self._order.remove(before.zone, facts.name)
            self._order.add(facts.zone, facts.name, node)
            self.membership += 1
        self._replace_facts(node, facts)
        return before

    def remove_node(self, name: str) -> NodeFacts | None:
        """Remove a node. Its pods are kept until they are removed, too."""
        node = self._nodes.get(name)
        if node is None or node.facts is None:
            return None
        before = node.facts
        self._order.remove(before.zone, name)
        self.membership += 1
        self._replace_facts(node, None)
        self._drop_if_empty(node)
        return before

    def _replace_facts(self, node: NodeInfo, facts: NodeFacts | None) -> None:
        before = node.facts
        if before is not None:
            self._count_facts(before, node, -1)
        relabelled = node.labels != (facts.labels if facts else _NO_LABELS)
        pods = [pod for pod in node.pods.values() if pod.has_affinity] if relabelled else []
        for pod in pods:
            self.terms.remove(pod, node.labels)
        node.set_facts(facts)
        for pod in pods:
            self.terms.add(pod, node.labels)
        if facts is not None:
            self._count_facts(facts, node, 1)
        self._update_traits()
        self._changed(node)

    def _count_facts(self, facts: NodeFacts, node: NodeInfo, sign: int) -> None:
        for image in facts.images:
            total = self.nodes_by_image.get(image, 0) + sign
            if total:
                self.nodes_by_image[image] = total
            else:
                del self.nodes_by_image[image]
        self.nodes_with_blocking_taints += sign * bool(node.blocking_taints)
        self.nodes_with_soft_taints += sign * bool(node.soft_taints)
        self.unschedulable_nodes += sign * facts.is_unschedulable

    def _update_traits(self) -> None:
        terms = self.terms
        has = {
            Trait.BLOCKING_TAINTS: self.nodes_with_blocking_taints,
            Trait.SOFT_TAINTS: self.nodes_with_soft_taints,
            Trait.UNSCHEDULABLE_NODES: self.unschedulable_nodes,
            Trait.IMAGES: self.nodes_by_image,
            Trait.POD_AFFINITY: terms.affinity or terms.preferred,
            Trait.POD_ANTI_AFFINITY: terms.anti_affinity,
        }
        self.traits = frozenset(trait for trait, found in has.items() if found)

    # --- pods that have a place ---

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    @property
    def pods(self) -> Mapping[str, PodInfo]:
        """All assigned and assumed pods, by uid."""
        return self._pods

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def assume_pod(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Count the pod for the node before it is bound. Returns the pod as it is counted."""
        if pod.uid in self._pods:
            raise ValueError(f"pod {pod.key} already has a place")
        assumed = pod.assigned_to(node_name)
        self._place(assumed)
        self._assumed.add(pod.uid)
        return assumed

    def forget_pod(self, uid: str) -> None:
        """Undo `assume_pod`, unless the API server has confirmed the binding."""
        if uid in self._assumed:
            self.remove_pod(uid)

    def set_pod(self, pod: PodInfo) -> PodInfo | None:
        """Add or update a pod. Returns its previous version.

        A pod without a node is not counted unless it is assumed. A finished pod is not counted.
        """
        before = self._pods.get(pod.uid)
        if pod.is_finished:
            return self.remove_pod(pod.uid)
        if not pod.node_name:
            return before if pod.uid in self._assumed else self.remove_pod(pod.uid)
        self._assumed.discard(pod.uid)
        if before is None:
            self._place(pod)
        elif _has_same_footprint(before, pod):
            self._pods[pod.uid] = self._nodes[pod.node_name].pods[pod.uid] = pod
        else:
            self._displace(before)
            self._place(pod)
        return before

    def remove_pod(self, uid: str) -> PodInfo | None:
        self._assumed.discard(uid)
        pod = self._pods.get(uid)
        if pod is not None:
            self._displace(pod)
        return pod

    def _place(self, pod: PodInfo) -> None:
        node = self._nodes.get(pod.node_name)
        if node is None:
            node = self._nodes[pod.node_name] = NodeInfo(pod.node_name)
        node.add_pod(pod)
        self._pods[pod.uid] = pod
        self._matching_pods.add(pod)
        if pod.has_affinity:
            self.terms.add(pod, node.labels)
            self._update_traits()
        for claim in pod.volume_claims:
            key = (pod.key.namespace, claim.name)
            self.volume_claim_uses[key] = self.volume_claim_uses.get(key, 0) + 1
        self._changed(node)

    def _displace(self, pod: PodInfo) -> None:
        node = self._nodes[pod.node_name]
        node.remove_pod(pod.uid)
        del self._pods[pod.uid]
        self._matching_pods.remove(pod)
        if pod.has_affinity:
            self.terms.remove(pod, node.labels)
            self._update_traits()
        for claim in pod.volume_claims:
            key = (pod.key.namespace, claim.name)
            self.volume_claim_uses[key] -= 1
            if not self.volume_claim_uses[key]:
                del self.volume_claim_uses[key]
        self._changed(node)
        self._drop_if_empty(node)

    def matching_pods(self, query: PodQuery) -> Mapping[str, int]:
        """Numbers of pods by node name, without zeros. A live view: do not modify it."""
        return self._matching_pods.counts(query, self._pods.values())

    @property
    def pod_scans(self) -> int:
        """How often a query iterated over all pods; tests count it."""
        return self._matching_pods.scans

    # --- namespaces ---

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        self.namespace_labels[name] = labels

    def remove_namespace(self, name: str) -> None:
        self.namespace_labels.pop(name, None)

    def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        return self.namespace_labels.get(name, _NO_LABELS)

    # --- changes ---

    def touch(self, name: str = "") -> None:
        """Invalidate cached results for a node, or (without a name) for all nodes."""
        touched = [self._nodes.get(name)] if name else list(self._nodes.values())
        for node in touched:
            if node is not None:
                node.touch()
                self._changed(node)

    def _changed(self, node: NodeInfo) -> None:
        self._nodes.pop(node.name, None)
        self._nodes[node.name] = node

    def _drop_if_empty(self, node: NodeInfo) -> None:
        if node.facts is None and not node.pods:
            del self._nodes[node.name]


def _has_same_footprint(old: PodInfo, new: PodInfo) -> bool:
    """Whether the two versions of an assigned pod are equal for all plugins."""
    return (
        old.node_name == new.node_name
        and old.is_terminating == new.is_terminating
        and (old.shape is new.shape or _has_same_spec(old, new))
    )


def _has_same_spec(old: PodInfo, new: PodInfo) -> bool:
    return (
        old.requests == new.requests
        and old.nonzero_milli_cpu == new.nonzero_milli_cpu
        and old.nonzero_memory == new.nonzero_memory
        and old.labels == new.labels
        and old.priority == new.priority
        and old.host_ports == new.host_ports
        and old.volume_claims == new.volume_claims
    )  # all other fields that plugins read of an assigned pod are immutable
