"""Nodes: the fields of a node, parsed once per version, and the resources that its pods use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from allot.allocation import TargetNode
from allot.api.core import Node
from allot.api.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    read_taints,
)
from allot.scheduler.state.affinity import REGION_LABEL, ZONE_LABEL
from allot.scheduler.state.pods import HostPort, PodInfo, normalized_image
from allot.scheduler.state.resources import PODS, Resources, read_amounts

ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - nothing is bound here

_next_generation: Final = count(1).__next__


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """The fields of a node that plugins read."""

    node: Node
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_unschedulable: bool
    allocatable: Resources
    max_pods: int
    images: Mapping[str, int]
    """Size in bytes by normalised name."""
    declared_features: frozenset[str]
    condition_statuses: Mapping[str, str]
    target: TargetNode
    """The node for the allocator."""

    @property
    def zone(self) -> tuple[str, str]:
        """Region and zone; empty if the node has no such labels."""
        labels = self.labels
        return (
            labels.get(REGION_LABEL) or labels.get("failure-domain.beta.kubernetes.io/region", ""),
            labels.get(ZONE_LABEL) or labels.get("failure-domain.beta.kubernetes.io/zone", ""),
        )

    def is_equivalent(self, other: NodeFacts) -> bool:
        """Whether the two are equal for all plugins. Heartbeats and annotations are ignored."""
        return (
            self.labels == other.labels
            and self.taints == other.taints
            and self.is_unschedulable == other.is_unschedulable
            and self.allocatable == other.allocatable
            and self.max_pods == other.max_pods
            and self.images == other.images
            and self.declared_features == other.declared_features
        )

    @classmethod
    def of(cls, node: Node) -> NodeFacts:
        meta: Mapping[str, Any] = node.data.get("metadata") or {}
        spec: Mapping[str, Any] = node.data.get("spec") or {}
        status: Mapping[str, Any] = node.data.get("status") or {}
        amounts = read_amounts(status.get("allocatable"))
        name: str = meta.get("name") or ""
        labels: Mapping[str, str] = meta.get("labels") or {}
        features = frozenset(status.get("declaredFeatures") or ())
        return cls(
            node=node,
            name=name,
            labels=labels,
            annotations=meta.get("annotations") or {},
            taints=read_taints(spec.get("taints") or ()),
            is_unschedulable=bool(spec.get("unschedulable")),
            allocatable=Resources.of(amounts),
            max_pods=amounts.get(PODS, 0),
            images={
                normalized_image(name): image.get("sizeBytes") or 0
                for image in status.get("images") or ()
                for name in image.get("names") or ()
            },
            declared_features=features,
            condition_statuses={
                condition.get("type", ""): condition.get("status", "")
                for condition in status.get("conditions") or ()
            },
            target=TargetNode(name, labels, features),
        )


class NodeInfo:
    """A node and what the pods on it use. `generation` changes with everything that plugins read.

    Plugins only read it; `ClusterState` changes it. A `clone` may be changed.
    """

    __slots__ = (
        "allocatable_ephemeral_storage", "allocatable_memory", "allocatable_milli_cpu",
        "allocatable_scalars", "blocking_taints", "facts", "generation", "is_unschedulable",
        "labels", "max_pods", "name", "nonzero_memory", "nonzero_milli_cpu", "pods",
        "requested_ephemeral_storage", "requested_memory", "requested_milli_cpu",
        "requested_scalars", "soft_taints", "used_ports", "volume_claim_uses",
    )  # fmt: skip

    def __init__(self, name: str, facts: NodeFacts | None = None) -> None:
        self.name = name
        self.facts: NodeFacts | None = None
        """None if only pods refer to the node; it is then not in `ClusterState.nodes`."""
        self.pods: dict[str, PodInfo] = {}
        """By uid, in order of insertion."""
        self.requested_milli_cpu = 0
        self.requested_memory = 0
        self.requested_ephemeral_storage = 0
        self.requested_scalars: dict[str, int] = {}
        self.nonzero_milli_cpu = 0
        self.nonzero_memory = 0
        self.used_ports: dict[HostPort, int] = {}
        self.volume_claim_uses: dict[tuple[str, str], int] = {}
        """How many pods here use a PersistentVolumeClaim, by namespace and name."""
        self.set_facts(facts)

    def set_facts(self, facts: NodeFacts | None) -> None:
        self.facts = facts
        self.labels: Mapping[str, str] = facts.labels if facts else {}
        self.is_unschedulable = facts.is_unschedulable if facts else False
        allocatable = facts.allocatable if facts else Resources()
        self.allocatable_milli_cpu = allocatable.milli_cpu
        self.allocatable_memory = allocatable.memory
        self.allocatable_ephemeral_storage = allocatable.ephemeral_storage
        self.allocatable_scalars = dict(allocatable.scalars)
        self.max_pods = facts.max_pods if facts else 0
        taints = facts.taints if facts else ()
        self.blocking_taints = tuple(
            taint for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
        )
        self.soft_taints = tuple(taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
        self.generation: int = _next_generation()

    def touch(self) -> None:
        """State of this node changed that is kept elsewhere."""
        self.generation = _next_generation()

    def add_pod(self, pod: PodInfo) -> None:
        """Count a pod that is not here yet."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def remove_pod(self, uid: str) -> PodInfo:
        """Stop counting a pod; KeyError if it is not here."""
        pod = self.pods.pop(uid)
        self._count(pod, -1)
        return pod

    def _count(self, pod: PodInfo, sign: int) -> None:
        requests = pod.requests
        self.requested_milli_cpu += sign * requests.milli_cpu
        self.requested_memory += sign * requests.memory
        self.requested_ephemeral_storage += sign * requests.ephemeral_storage
        self.nonzero_milli_cpu += sign * pod.nonzero_milli_cpu
        self.nonzero_memory += sign * pod.nonzero_memory
        for name, amount in requests.scalars:
            _tally(self.requested_scalars, name, sign * amount)
        for port in pod.host_ports:
            _tally(self.used_ports, _on_all_addresses(port), sign)
        for claim in pod.volume_claims:
            _tally(self.volume_claim_uses, (pod.key.namespace, claim.name), sign)
        self.generation = _next_generation()

    def clone(self) -> NodeInfo:
        """A copy for dry runs."""
        copy = NodeInfo.__new__(NodeInfo)
        for slot in NodeInfo.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.pods = dict(self.pods)
        copy.requested_scalars = dict(self.requested_scalars)
        copy.used_ports = dict(self.used_ports)
        copy.volume_claim_uses = dict(self.volume_claim_uses)
        return copy

    def has_port_conflict(self, wanted: Iterable[HostPort]) -> bool:
        """Whether one of these ports is taken, on the same address or on all of them."""
        used = self.used_ports
        if not used:
            return False
        for port in wanted:
            ip, protocol, number = _on_all_addresses(port)
            if ip == ALL_ADDRESSES:
                if any(one.port == number and one.protocol == protocol for one in used):
                    return True
            elif (ip, protocol, number) in used or (ALL_ADDRESSES, protocol, number) in used:
                return True
        return False

    def __repr__(self) -> str:
        return f"NodeInfo({self.name}, {len(self.pods)} pods, generation {self.generation})"


def _on_all_addresses(port: HostPort) -> HostPort:
    return port if port.ip else port._replace(ip=ALL_ADDRESSES)


def _tally(counts: dict[Any, int], key: Any, change: int) -> None:
    """Add to a count; zeros are dropped."""
    total = counts.get(key, 0) + change
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)
