"""Quota evaluators: per resource, which entries of a quota its objects count towards, and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.quota import pods
from allot.quota.amounts import COUNT, NONE, ONE, REQUESTS, Amounts, read_amounts
from allot.quota.claims import ClaimEntries, claim_usage, extended_name_by_class

_OLD_NAMES: Final = frozenset({"configmaps", "secrets", "replicationcontrollers", "resourcequotas"})
"""Core resources that are also counted without `count/`."""
STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
STORAGE: Final = "storage"
_VOLUME_CLAIMS: Final = "persistentvolumeclaims"


class GroupResource(NamedTuple):
    """A resource in any version."""

    group: str
    plural: str

    @property
    def count_name(self) -> str:
        return f"{COUNT}{self.plural}.{self.group}" if self.group else f"{COUNT}{self.plural}"

    @staticmethod
    def counted_by(name: str) -> GroupResource | None:
        """The resource that an entry such as `count/jobs.batch` counts."""
        if not name.startswith(COUNT):
            return None
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return GroupResource(group, plural)


class Evaluator(Protocol):
    """Computes the usage of objects of one resource."""

    resource: GroupResource
    required: frozenset[str]
    """Entries that require every object to state amounts."""

    def names(self, names: Iterable[str]) -> list[str]:
        """The entries among these that the objects count towards."""
        ...

    def usage(self, obj: Any) -> Amounts:
        """The usage of one object."""
        ...

    def matches_scope(self, obj: Any, scope: str, operator: str, values: Sequence[str]) -> bool:
        """Whether a quota with this scope covers the object."""
        ...

    def missing_amounts(self, obj: Any, names: Iterable[str]) -> str:
        """Requests and limits that these entries require and the object lacks; empty if nothing is missing."""
        ...


class ObjectCountEvaluator:
    """Counts objects of any resource. They match no scope."""

    required: frozenset[str] = frozenset()

    def __init__(self, resource: GroupResource) -> None:
        self.resource = resource
        self._counts: Amounts = {resource.count_name: ONE}
        if not resource.group and resource.plural in _OLD_NAMES:
            self._counts[resource.plural] = ONE

    def names(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._counts]

    def usage(self, obj: Any) -> Amounts:
        return dict(self._counts)

    def matches_scope(self, obj: Any, scope: str, operator: str, values: Sequence[str]) -> bool:
        return False

    def missing_amounts(self, obj: Any, names: Iterable[str]) -> str:
        return ""


class PodEvaluator(ObjectCountEvaluator):
    """Pods and their compute resources."""

    required = pods.REQUIRED_OF_CONTAINERS

    def __init__(self, now: datetime) -> None:
        super().__init__(GroupResource("", "pods"))
        self._now = now

    def names(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if pods.counts_pods(name)]

    def usage(self, obj: RawObject) -> Amounts:
        return pods.pod_usage(obj, self._now)

    def matches_scope(
        self, obj: RawObject, scope: str, operator: str, values: Sequence[str]
    ) -> bool:
        return pods.matches_scope(obj, scope, operator, values)

    def missing_amounts(self, obj: RawObject, names: Iterable[str]) -> str:
        return pods.missing_amounts(obj, names)


class ServiceEvaluator(ObjectCountEvaluator):
    """Services, their node ports and load balancers."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "services"))

    def names(self, names: Iterable[str]) -> list[str]:
        known = ("services", "services.nodeports", "services.loadbalancers", "count/services")
        return [name for name in names if name in known]

    def usage(self, obj: RawObject) -> Amounts:
        ports = obj.get("spec", "ports", default=[])
        node_ports, balancers = 0, 0
        match obj.get("spec", "type"):
            case "NodePort":
                node_ports = len(ports)
            case "LoadBalancer":
                balancers = 1
                node_ports = len(ports)
                if obj.get("spec", "allocateLoadBalancerNodePorts") is False:
                    node_ports = sum(bool(port.get("nodePort")) for port in ports)
        return {
            "count/services": ONE,
            "services": ONE,
            "services.nodeports": Quantity.of(node_ports),
            "services.loadbalancers": Quantity.of(balancers),
        }


class PersistentVolumeClaimEvaluator(ObjectCountEvaluator):
    """PersistentVolumeClaims and their storage, in total and per storage class."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", _VOLUME_CLAIMS))

    def names(self, names: Iterable[str]) -> list[str]:
        known = (_VOLUME_CLAIMS, f"{COUNT}{_VOLUME_CLAIMS}", REQUESTS + STORAGE)
        ends = (f"{STORAGE_CLASS}{_VOLUME_CLAIMS}", f"{STORAGE_CLASS}{REQUESTS}{STORAGE}")
        return [name for name in names if name in known or name.endswith(ends)]

    def usage(self, obj: RawObject) -> Amounts:
        asked = read_amounts(obj.get("spec", "resources", "requests")).get(STORAGE, NONE)
        held = read_amounts(obj.get("status", "allocatedResources")).get(STORAGE, NONE)
        storage = max(asked, held)
        usage = {
            f"{COUNT}{_VOLUME_CLAIMS}": ONE,
            _VOLUME_CLAIMS: ONE,
            REQUESTS + STORAGE: storage,
        }
        storage_class = obj.get("spec", "storageClassName")
        if storage_class:
            usage[f"{storage_class}{STORAGE_CLASS}{_VOLUME_CLAIMS}"] = ONE
            usage[f"{storage_class}{STORAGE_CLASS}{REQUESTS}{STORAGE}"] = storage
        return usage

    def matches_scope(
        self, obj: RawObject, scope: str, operator: str, values: Sequence[str]
    ) -> bool:
        if scope != "VolumeAttributesClass":
            return False
        names = (
            obj.get("spec", "volumeAttributesClassName", default=""),
            obj.get("status", "currentVolumeAttributesClassName", default=""),
            obj.get("status", "modifyVolumeStatus", "targetVolumeAttributesClassName", default=""),
        )
        return pods.selects(names, operator, values)


class ResourceClaimEvaluator(ObjectCountEvaluator):
    """ResourceClaims and the devices they request."""

    def __init__(
        self,
        classes: Sequence[DeviceClass],
        pod_of: Callable[[ObjectKey], Pod | None],
        *,
        extended_resources: bool = True,
    ) -> None:
        """`pod_of` finds the pod that a claim for extended resources belongs to."""
        super().__init__(GroupResource(DRA, "resourceclaims"))
        self._extended_names = extended_name_by_class(classes)
        self._pod_of = pod_of
        self._extended = extended_resources
        self._entries = ClaimEntries(classes, extended_resources=extended_resources)

    def with_pods(self, pod_of: Callable[[ObjectKey], Pod | None]) -> ResourceClaimEvaluator:
        """The same with other pods; the classes are not looked through again."""
        other = copy(self)
        other._pod_of = pod_of
        return other

    def names(self, names: Iterable[str]) -> list[str]:
        return self._entries.among(names)

    def usage(self, obj: ResourceClaim) -> Amounts:
        usage = claim_usage(
            obj, self._extended_names, extended_resources=self._extended, pod=self._owner(obj)
        )
        return {name: Quantity.of(count) for name, count in usage.items()}

    def _owner(self, claim: ResourceClaim) -> Pod | None:
        for ref in claim.metadata.owner_references:
            if ref.controller and (ref.api_version, ref.kind) == ("v1", "Pod"):
                pod = self._pod_of(ObjectKey(claim.metadata.namespace, ref.name))
                if pod is not None and pod.metadata.uid == ref.uid:
                    return pod
        return None


SPECIAL: Final = frozenset(
    {
        GroupResource("", "pods"),
        GroupResource("", "services"),
        GroupResource("", _VOLUME_CLAIMS),
        GroupResource(DRA, "resourceclaims"),
    }
)
"""Resources with their own evaluators. For all others, only objects are counted."""


def object_count_resources(names: Iterable[str]) -> set[GroupResource]:
    """The resources of which these entries count objects."""
    found = {GroupResource("", name) for name in names if name in _OLD_NAMES}
    for name in names:
        resource = GroupResource.counted_by(name)
        if resource is not None and resource not in SPECIAL:
            found.add(resource)
    return found
