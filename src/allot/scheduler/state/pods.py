"""PodInfo: the fields of a pod that the scheduler reads, parsed once per version."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from allot.api.amounts import is_sidecar
from allot.api.core import Pod, PodResourceClaim
from allot.api.identities import ObjectKey
from allot.api.selectors import (
    LabelSelector,
    NodeSelection,
    NodeTerm,
    labels_selector,
    node_selection,
    node_term,
)
from allot.api.taints import Toleration, read_tolerations
from allot.scheduler.state.affinity import (
    PodTerm,
    SpreadConstraint,
    WeightedTerm,
    read_pod_terms,
    read_spread_constraints,
    read_weighted_terms,
)
from allot.scheduler.state.disks import InlineDisk, read_inline_disks
from allot.scheduler.state.resources import Resources, read_pod_requests

PREEMPT_NEVER: Final = "Never"


class HostPort(NamedTuple):
    """A host port of a container. The empty address stands for all addresses."""

    ip: str
    protocol: str
    port: int


class VolumeClaimRef(NamedTuple):
    """A PersistentVolumeClaim that the pod mounts; an ephemeral one is created for this pod."""

    name: str
    is_ephemeral: bool


class PreferredNodes(NamedTuple):
    """A preferred term of node affinity."""

    term: NodeTerm
    weight: int


class PodEquivalenceClass:
    """The fields of a pod that node-local plugins read. Equal pods share one object."""

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


_EQUIVALENCE_CLASSES: Final[WeakValueDictionary[tuple[Any, ...], PodEquivalenceClass]] = (
    WeakValueDictionary()
)


def _equivalence_class_of(parts: tuple[Any, ...]) -> PodEquivalenceClass:
    equivalence_class = _EQUIVALENCE_CLASSES.get(parts)
    if equivalence_class is None:
        equivalence_class = _EQUIVALENCE_CLASSES[parts] = PodEquivalenceClass(parts)
    return equivalence_class


class PodShape:
    """What the scheduler reads of a pod but its name, its node and most of its status.

    Versions of a pod share one object until their spec or labels change, and so do successive pods of a namespace
    that are equal in this. It is compared by identity: other objects may be equal.
    """

    __slots__ = ("_labels", "_read_of_status", "_spec", "derived")

    def __init__(
        self, spec: Mapping[str, Any], labels: Mapping[str, str], status: Mapping[str, Any]
    ) -> None:
        self._spec = _without_node(spec)
        self._labels = labels
        self._read_of_status = _read_of_status(status)
        self.derived: dict[Hashable, Any] = {}
        """What others have found out about the shape, kept as long as it is."""

    def is_of(
        self, spec: Mapping[str, Any], labels: Mapping[str, str], status: Mapping[str, Any]
    ) -> bool:
        """Whether a pod of the same namespace has this shape. If so, the latest spec is kept, not an older one beside it."""
        if "nodeName" in spec:
            spec = _without_node(spec)
        read = self._read_of_status
        if (
            spec != self._spec
            or labels != self._labels
            or read is None
            or _read_of_status(status) != read
        ):
            return False
        self._spec, self._labels = spec, labels
        return True


def _without_node(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    if "nodeName" not in spec:
        return spec
    left = {**spec}
    del left["nodeName"]
    return left


class PodInfo(msgspec.Struct, frozen=True, eq=False):
    """A pod as the scheduler reads it. Compared by identity; `uid` identifies the pod."""

    pod: Pod
    key: ObjectKey
    uid: str
    labels: Mapping[str, str]
    priority: int
    preemption_policy: str
    scheduler_name: str
    node_name: str
    nominated_node_name: str
    is_terminating: bool
    is_finished: bool
    start_time: str
    """RFC 3339 in UTC, so it sorts; empty if the pod has not started."""

    requests: Resources
    nonzero_milli_cpu: int
    nonzero_memory: int
    host_ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    """Normalised names, of all containers, with repetitions."""

    tolerations: tuple[Toleration, ...]
    node_selector: LabelSelector | None
    required_nodes: NodeSelection | None
    preferred_nodes: tuple[PreferredNodes, ...]

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred_affinity: tuple[WeightedTerm, ...]
    spread_constraints: tuple[SpreadConstraint, ...]

    scheduling_gates: tuple[str, ...]
    claims: tuple[PodResourceClaim, ...]
    claim_statuses: tuple[Any, Any]
    """`status.resourceClaimStatuses` and `status.extendedResourceClaimStatus`, for comparison."""
    volume_claims: tuple[VolumeClaimRef, ...]
    inline_disks: tuple[InlineDisk, ...]

    unbound_class: PodEquivalenceClass
    """The equivalence class without a node."""
    shape: PodShape

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def equivalence_class(self) -> PodEquivalenceClass:
        """Equal for two pods if and only if they are equal for all node-local plugins."""
        if not self.node_name:
            return self.unbound_class
        return _equivalence_class_of((self.node_name, *self.unbound_class.parts[1:]))

    @property
    def has_affinity(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred_affinity)

    def accepts_node(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node matches the node selector and the required node affinity."""
        selector, required = self.node_selector, self.required_nodes
        return (selector is None or selector.matches(labels)) and (
            required is None or required.matches(name, labels)
        )

    def assigned_to(self, node_name: str) -> PodInfo:
        """This pod as if it were bound. `pod` stays the object of the API server."""
        return msgspec.structs.replace(self, node_name=node_name)

    def _as_now(self, pod: Pod, key: ObjectKey | None) -> PodInfo | None:
        """A newer version, or (with a key) another pod, if it has the same shape."""
        data = pod.data
        meta: Mapping[str, Any] = data.get("metadata") or {}
        spec: Mapping[str, Any] = data.get("spec") or {}
        status: Mapping[str, Any] = data.get("status") or {}
        if not self.shape.is_of(spec, meta.get("labels") or {}, status):
            return None
        if key is None:
            key = self.key
        elif not self._shares_shape(key):
            return None
        return msgspec.structs.replace(
            self,
            pod=pod,
            key=key,
            uid=meta.get("uid") or "",
            node_name=spec.get("nodeName") or "",
            nominated_node_name=status.get("nominatedNodeName") or "",
            is_terminating=meta.get("deletionTimestamp") is not None,
            is_finished=status.get("phase") in ("Succeeded", "Failed"),
            start_time=status.get("startTime") or "",
            claim_statuses=_claim_statuses(status),
        )

    def _shares_shape(self, key: ObjectKey) -> bool:
        """Whether another pod of the same spec has the same shape: those of a controller mostly have."""
        if self.key.namespace != key.namespace:
            return False
        # The names of ephemeral volumes' claims begin with the pod's.
        return not self.volume_claims or not any(one.is_ephemeral for one in self.volume_claims)

    @classmethod
    def of(cls, pod: Pod, before: PodInfo | None = None, similar: PodInfo | None = None) -> PodInfo:
        """The parsed pod. Unchanged parts are taken over from `before`, an earlier version.

        Without one, they are taken over from `similar`, any other pod, if both have the same spec.
        """
        if before is not None:
            found = before._as_now(pod, None)
        else:
            found = similar._as_now(pod, pod.key) if similar is not None else None
        return cls._parsed(pod) if found is None else found

    @classmethod
    def _parsed(cls, pod: Pod) -> PodInfo:
        data, key = pod.data, pod.key
        meta: Mapping[str, Any] = data.get("metadata") or {}
        spec: Mapping[str, Any] = data.get("spec") or {}
        status: Mapping[str, Any] = data.get("status") or {}
        labels: Mapping[str, str] = meta.get("labels") or {}
        affinity: Mapping[str, Any] = spec.get("affinity") or {}
        node_affinity: Mapping[str, Any] = affinity.get("nodeAffinity") or {}
        near: Mapping[str, Any] = affinity.get("podAffinity") or {}
        apart: Mapping[str, Any] = affinity.get("podAntiAffinity") or {}
        requests, nonzero_milli_cpu, nonzero_memory = read_pod_requests(spec, status)
        host_ports = tuple(_host_ports(spec))
        tolerations = read_tolerations(spec.get("tolerations") or ())
        wanted_labels = spec.get("nodeSelector")
        selector = labels_selector(wanted_labels) if wanted_labels else None
        required = node_selection(node_affinity.get(_REQUIRED))
        preferred = read_preferred_nodes(node_affinity.get(_PREFERRED))
        unbound_class = _equivalence_class_of(
            (
                "", requests, nonzero_milli_cpu, nonzero_memory, host_ports,
                tolerations, selector, required, preferred,
            )
        )  # fmt: skip
        return cls(
            pod=pod,
            key=key,
            uid=meta.get("uid") or "",
            labels=labels,
            priority=spec.get("priority") or 0,
            preemption_policy=spec.get("preemptionPolicy") or "PreemptLowerPriority",
            scheduler_name=spec.get("schedulerName") or "default-scheduler",
            node_name=spec.get("nodeName") or "",
            nominated_node_name=status.get("nominatedNodeName") or "",
            is_terminating=meta.get("deletionTimestamp") is not None,
            is_finished=status.get("phase") in ("Succeeded", "Failed"),
            start_time=status.get("startTime") or "",
            requests=requests,
            nonzero_milli_cpu=nonzero_milli_cpu,
            nonzero_memory=nonzero_memory,
            host_ports=host_ports,
            images=tuple(_images(spec)),
            tolerations=tolerations,
            node_selector=selector,
            required_nodes=required,
            preferred_nodes=preferred,
            affinity=read_pod_terms(near.get(_REQUIRED), key.namespace, labels),
            anti_affinity=read_pod_terms(apart.get(_REQUIRED), key.namespace, labels),
            preferred_affinity=(
                *read_weighted_terms(near.get(_PREFERRED), key.namespace, labels, 1),
                *read_weighted_terms(apart.get(_PREFERRED), key.namespace, labels, -1),
            ),
            spread_constraints=read_spread_constraints(
                spec.get("topologySpreadConstraints"), labels
            ),
            scheduling_gates=tuple(
                gate.get("name", "") for gate in spec.get("schedulingGates") or ()
            ),
            claims=tuple(_claims(spec)),
            claim_statuses=_claim_statuses(status),
            volume_claims=tuple(_volume_claims(spec, key.name)),
            inline_disks=read_inline_disks(spec.get("volumes") or ()),
            unbound_class=unbound_class,
            shape=PodShape(spec, labels, status),
        )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _read_of_status(status: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The parts of the status that requests depend on: allocated resources. None during a resize."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return None
    return status.get("initContainerStatuses"), status.get("containerStatuses")


def _claim_statuses(status: Mapping[str, Any]) -> tuple[Any, Any]:
    return status.get("resourceClaimStatuses"), status.get("extendedResourceClaimStatus")


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Every container, and whether it is an init container that ends before the others start."""
    for container in spec.get("initContainers") or ():
        yield not is_sidecar(container), container
    for container in spec.get("containers") or ():
        yield False, container


def _host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    for ends, container in _containers(spec):
        if ends:
            continue
        for port in container.get("ports") or ():
            number = port.get("hostPort") or 0
            if number > 0:
                yield HostPort(port.get("hostIP") or "", port.get("protocol") or "TCP", number)


def _images(spec: Mapping[str, Any]) -> Iterator[str]:
    for _, container in _containers(spec):
        if container.get("image"):
            yield normalized_image(container["image"])


def normalized_image(name: str) -> str:
    """The name with its tag, `latest` unless it has one."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def read_preferred_nodes(raw: Any) -> tuple[PreferredNodes, ...]:
    """Preferred terms. Those that select nothing are dropped."""
    terms = ((node_term(one.get("preference") or {}), one.get("weight") or 0) for one in raw or ())
    return tuple(PreferredNodes(term, weight) for term, weight in terms if term and weight)


def _claims(spec: Mapping[str, Any]) -> Iterator[PodResourceClaim]:
    for entry in spec.get("resourceClaims") or ():
        yield PodResourceClaim(
            name=entry.get("name") or "",
            resource_claim_name=entry.get("resourceClaimName"),
            resource_claim_template_name=entry.get("resourceClaimTemplateName"),
        )


def _volume_claims(spec: Mapping[str, Any], pod_name: str) -> Iterator[VolumeClaimRef]:
    for volume in spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            name = volume["persistentVolumeClaim"].get("claimName") or ""
            yield VolumeClaimRef(name, is_ephemeral=False)
        elif volume.get("ephemeral") is not None:
            yield VolumeClaimRef(f"{pod_name}-{volume.get('name', '')}", is_ephemeral=True)
