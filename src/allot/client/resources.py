"""The resources that schedulers, controllers and nodes ask the API server for.

Each is a kind of the table `allot.api.kinds` in its preferred version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar, overload
from urllib.parse import quote

from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.core import Namespace, Node, Pod, ResourceQuota
from allot.api.identities import GroupVersion, GroupVersionKind, ObjectKey
from allot.api.kinds import KINDS, kind_named
from allot.api.lazy import lazy
from allot.api.pool_status import ResourcePoolStatusRequest
from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.api.slices import ResourceSlice
from allot.client.codecs import Codec, RawCodec, TypedCodec
from allot.client.pod_codec import PodCodec
from allot.client.projection import WHOLE, Form
from allot.client.protobuf import ProtobufCodec

T = TypeVar("T")
RawT = TypeVar("RawT", bound=RawObject)


_is_plain: Final = re.compile(r"[A-Za-z0-9._-]*").fullmatch
"""Matches what needs no escapes in a path, such as most names that Kubernetes accepts."""


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
    protobuf: ProtobufCodec[T] | None = field(default=None, repr=False, compare=False)
    """How objects are read and written where the client prefers protobuf for them."""

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @lazy
    def api_version(self) -> str:
        return str(GroupVersion(self.group, self.version))

    @lazy
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection_path(self, namespace: str = "") -> str:
        """Where to list and create; without a namespace, in all of them."""
        if not namespace or not self.namespaced:
            return f"{self._root}/{self.plural}"
        if not _is_plain(namespace):
            namespace = quote(namespace, safe="")
        return f"{self._root}/namespaces/{namespace}/{self.plural}"

    def path(self, key: ObjectKey, subresource: str = "") -> str:
        namespace, name = key
        if not name:
            raise ValueError(f"{self.plural}: an object without a name has no path")
        if not _is_plain(name):
            name = quote(name, safe="")
        path = f"{self.collection_path(namespace)}/{name}"
        return f"{path}/{subresource}" if subresource else path

    @overload
    def as_raw(self) -> Resource[RawObject]: ...
    @overload
    def as_raw(self, cls: type[RawT]) -> Resource[RawT]: ...
    def as_raw(self, cls: type[Any] = RawObject) -> Resource[Any]:
        """The same with objects as JSON values, that keep even what allot does not know."""
        return raw_resource(
            cls, self.group, self.version, self.plural, self.kind, namespaced=self.namespaced
        )

    def in_version(self, version: str) -> Resource[T]:
        """The same, asked for in another version of its group. Hub objects stay hub objects."""
        gvk = GroupVersionKind(self.group, version, self.kind)
        protobuf = self.protobuf.in_version(gvk) if self.protobuf is not None else None
        codec = self.codec.in_version(gvk)
        return replace(self, version=version, codec=codec, protobuf=protobuf)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def raw_resource(
    cls: type[RawT], group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource[RawT]:
    """A resource whose objects are views of raw JSON. Any kind can be asked for this way."""
    codec = RawCodec(cls, GroupVersionKind(group, version, kind))
    return Resource(group, version, plural, kind, namespaced, codec)


_named: dict[tuple[str, str], Resource[Any]] = {}
"""The constants below, by group and plural."""


def _raw(cls: type[RawT], group: str, plural: str) -> Resource[RawT]:
    """A raw kind of the table, with objects seen through `cls`."""
    kind = kind_named(group, plural)
    assert issubclass(kind.view, cls)
    made = raw_resource(cls, group, kind.versions[0], plural, kind.name, namespaced=kind.namespaced)
    _named[group, plural] = made
    return made


def _pods() -> Resource[Pod]:
    made = _raw(Pod, "", "pods")
    made = _named["", "pods"] = replace(made, codec=PodCodec(made.gvk))
    return made


def _typed(cls: type[T], plural: str, *, protobuf: bool = False) -> Resource[T]:
    """A typed kind of the table, whose objects are of the class `cls`."""
    kind = kind_named(DRA, plural)
    assert kind.hub is cls
    gvk = kind.gvk(kind.versions[0])
    codec: TypedCodec[T] = TypedCodec(gvk)
    messages: ProtobufCodec[T] | None = ProtobufCodec(gvk) if protobuf else None
    made = Resource(DRA, gvk.version, plural, kind.name, kind.namespaced, codec, protobuf=messages)
    _named[DRA, plural] = made
    return made


PODS: Final = _pods()
NODES: Final = _raw(Node, "", "nodes")
NAMESPACES: Final = _raw(Namespace, "", "namespaces")
RESOURCE_QUOTAS: Final = _raw(ResourceQuota, "", "resourcequotas")
SERVICES: Final = _raw(RawObject, "", "services")
REPLICATION_CONTROLLERS: Final = _raw(RawObject, "", "replicationcontrollers")
PERSISTENT_VOLUMES: Final = _raw(RawObject, "", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS: Final = _raw(RawObject, "", "persistentvolumeclaims")
CONFIG_MAPS: Final = _raw(RawObject, "", "configmaps")
SERVICE_ACCOUNTS: Final = _raw(RawObject, "", "serviceaccounts")
CORE_EVENTS: Final = _raw(RawObject, "", "events")
EVENTS: Final = _raw(RawObject, "events.k8s.io", "events")

REPLICA_SETS: Final = _raw(RawObject, "apps", "replicasets")
STATEFUL_SETS: Final = _raw(RawObject, "apps", "statefulsets")
DEPLOYMENTS: Final = _raw(RawObject, "apps", "deployments")
DAEMON_SETS: Final = _raw(RawObject, "apps", "daemonsets")
CONTROLLER_REVISIONS: Final = _raw(RawObject, "apps", "controllerrevisions")
JOBS: Final = _raw(RawObject, "batch", "jobs")
HORIZONTAL_POD_AUTOSCALERS: Final = _raw(RawObject, "autoscaling", "horizontalpodautoscalers")
CRON_JOBS: Final = _raw(RawObject, "batch", "cronjobs")
POD_DISRUPTION_BUDGETS: Final = _raw(RawObject, "policy", "poddisruptionbudgets")

SERVICE_CIDRS: Final = _raw(RawObject, "networking.k8s.io", "servicecidrs")
IP_ADDRESSES: Final = _raw(RawObject, "networking.k8s.io", "ipaddresses")

STORAGE_CLASSES: Final = _raw(RawObject, "storage.k8s.io", "storageclasses")
CSI_NODES: Final = _raw(RawObject, "storage.k8s.io", "csinodes")
CSI_DRIVERS: Final = _raw(RawObject, "storage.k8s.io", "csidrivers")
CSI_STORAGE_CAPACITIES: Final = _raw(RawObject, "storage.k8s.io", "csistoragecapacities")
VOLUME_ATTACHMENTS: Final = _raw(RawObject, "storage.k8s.io", "volumeattachments")

CLUSTER_ROLES: Final = _raw(RawObject, "rbac.authorization.k8s.io", "clusterroles")
LEASES: Final = _raw(RawObject, "coordination.k8s.io", "leases")
PRIORITY_CLASSES: Final = _raw(RawObject, "scheduling.k8s.io", "priorityclasses")

RESOURCE_CLAIMS: Final = _typed(ResourceClaim, "resourceclaims", protobuf=True)
RESOURCE_CLAIM_TEMPLATES: Final = _typed(
    ResourceClaimTemplate, "resourceclaimtemplates", protobuf=True
)
RESOURCE_SLICES: Final = _typed(ResourceSlice, "resourceslices")
DEVICE_CLASSES: Final = _typed(DeviceClass, "deviceclasses")
DEVICE_TAINT_RULES: Final = _typed(DeviceTaintRule, "devicetaintrules")
RESOURCE_POOL_STATUS_REQUESTS: Final = _typed(
    ResourcePoolStatusRequest, "resourcepoolstatusrequests"
)

RESOURCES: Final[tuple[Resource[Any], ...]] = tuple(
    _named.get((kind.group, kind.plural)) or _raw(kind.view, kind.group, kind.plural)
    for kind in KINDS
    if kind.is_stored
)
"""Every kind of the table that there are objects of."""
