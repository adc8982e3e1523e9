"""What there is to ask for: the resources that schedulers, controllers and nodes work with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.core import Namespace, Node, Pod, ResourceQuota
from allot.api.identities import GroupVersion, GroupVersionKind, ObjectKey
from allot.api.pool_status import ResourcePoolStatusRequest
from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.api.slices import ResourceSlice
from allot.client.codecs import Codec, RawCodec, TypedCodec
from allot.client.projection import WHOLE, Form

T = TypeVar("T")
RawT = TypeVar("RawT", bound=RawObject)


_is_plain: Final = re.compile(r"[A-Za-z0-9._-]*").fullmatch


def _escaped(text: str) -> str:
    """A part of a path. Names that Kubernetes accepts are mostly fine as they are."""
    return text if _is_plain(text) else quote(text, safe="")


@dataclass(frozen=True)
class Resource(Generic[T]):
    """A kind in one version, where it is found, and how its objects are read."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    codec: Codec[T] = field(repr=False)
    form: Form = field(default=WHOLE, repr=False, compare=False)

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def api_version(self) -> str:
        return str(GroupVersion(self.group, self.version))

    def collection_path(self, namespace: str = "") -> str:
        """Where to list and create; without a namespace, in all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            return f"{root}/namespaces/{_escaped(namespace)}/{self.plural}"
        return f"{root}/{self.plural}"

    def path(self, key: ObjectKey, subresource: str = "") -> str:
        if not key.name:
            raise ValueError(f"{self.plural}: an object without a name has no path")
        path = f"{self.collection_path(key.namespace)}/{_escaped(key.name)}"
        return f"{path}/{subresource}" if subresource else path

    def as_raw(self) -> Resource[RawObject]:
        """The same with objects as JSON values, that keep even what allot does not know."""
        return raw_resource(
            RawObject, self.group, self.version, self.plural, self.kind, namespaced=self.namespaced
        )

    def in_version(self, version: str) -> Resource[T]:
        """The same, asked for in another version of its group. Hub objects stay hub objects."""
        gvk = GroupVersionKind(self.group, version, self.kind)
        return replace(self, version=version, codec=self.codec.in_version(gvk))

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def raw_resource(
    cls: type[RawT], group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource[RawT]:
    """A resource whose objects are views of raw JSON. Any kind can be asked for this way."""
    codec = RawCodec(cls, GroupVersionKind(group, version, kind))
    return Resource(group, version, plural, kind, namespaced, codec)


def _other(
    group: str, plural: str, kind: str, *, namespaced: bool = True, version: str = "v1"
) -> Resource[RawObject]:
    return raw_resource(RawObject, group, version, plural, kind, namespaced=namespaced)


def _dra(
    cls: type[T], plural: str, *, namespaced: bool = False, version: str = "v1"
) -> Resource[T]:
    codec: TypedCodec[T] = TypedCodec(GroupVersionKind(DRA, version, cls.__name__))
    return Resource(DRA, version, plural, cls.__name__, namespaced, codec)


PODS: Final = raw_resource(Pod, "", "v1", "pods", "Pod")
NODES: Final = raw_resource(Node, "", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = raw_resource(Namespace, "", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS: Final = raw_resource(ResourceQuota, "", "v1", "resourcequotas", "ResourceQuota")
SERVICES: Final = _other("", "services", "Service")
REPLICATION_CONTROLLERS: Final = _other("", "replicationcontrollers", "ReplicationController")
PERSISTENT_VOLUMES: Final = _other("", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = _other("", "persistentvolumeclaims", "PersistentVolumeClaim")
CONFIG_MAPS: Final = _other("", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS: Final = _other("", "serviceaccounts", "ServiceAccount")
CORE_EVENTS: Final = _other("", "events", "Event")
EVENTS: Final = _other("events.k8s.io", "events", "Event")

REPLICA_SETS: Final = _other("apps", "replicasets", "ReplicaSet")
STATEFUL_SETS: Final = _other("apps", "statefulsets", "StatefulSet")
DEPLOYMENTS: Final = _other("apps", "deployments", "Deployment")
DAEMON_SETS: Final = _other("apps", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS: Final = _other("apps", "controllerrevisions", "ControllerRevision")
JOBS: Final = _other("batch", "jobs", "Job")
POD_DISRUPTION_BUDGETS: Final = _other("policy", "poddisruptionbudgets", "PodDisruptionBudget")

STORAGE_CLASSES: Final = _other(
    "storage.k8s.io", "storageclasses", "StorageClass", namespaced=False
)
CSI_NODES: Final = _other("storage.k8s.io", "csinodes", "CSINode", namespaced=False)
CSI_DRIVERS: Final = _other("storage.k8s.io", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = _other(
    "storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity"
)
VOLUME_ATTACHMENTS: Final = _other(
    "storage.k8s.io", "volumeattachments", "VolumeAttachment", namespaced=False
)

LEASES: Final = _other("coordination.k8s.io", "leases", "Lease")
PRIORITY_CLASSES: Final = _other(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False
)

RESOURCE_CLAIMS: Final = _dra(ResourceClaim, "resourceclaims", namespaced=True)
RESOURCE_CLAIM_TEMPLATES: Final = _dra(
    ResourceClaimTemplate, "resourceclaimtemplates", namespaced=True
)
RESOURCE_SLICES: Final = _dra(ResourceSlice, "resourceslices")
DEVICE_CLASSES: Final = _dra(DeviceClass, "deviceclasses")
DEVICE_TAINT_RULES: Final = _dra(DeviceTaintRule, "devicetaintrules")
RESOURCE_POOL_STATUS_REQUESTS: Final = _dra(
    ResourcePoolStatusRequest, "resourcepoolstatusrequests", version="v1alpha3"
)

RESOURCES: Final[tuple[Resource[Any], ...]] = tuple(
    value for value in list(globals().values()) if isinstance(value, Resource)
)
"""All of the above."""
