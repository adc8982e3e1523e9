"""The table of everything that can be served: groups, resources, versions, subresources, selectable fields.

Discovery, routes, OpenAPI and storage keys all come from here. A new kind is a new line. What one server serves of
it is in `served`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.kinds import KINDS, Kind
from allot.api.resource import GROUP as DRA
from allot.apiserver.kinds.pool_index import pool_of

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS: Final = ("get", "patch", "update")


class Subresource(NamedTuple):
    """A part of an object with a path of its own. Without a `kind`, what is sent is the object itself."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: GroupVersionKind | None = None


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind and where it is served. The first version is the preferred one.

    There is one of each, so they are compared by identity.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """Field selectors beyond name and namespace: the path each of them reads."""
    verbs: tuple[str, ...] = VERBS
    deleted_shown_in: tuple[str, ...] = ()
    """The versions in which a delete is answered with the deleted object instead of a Status."""
    stored_as: tuple[str, str] | None = None
    """The group and plural under which it is stored, if it is another view of that resource."""
    index: Callable[[bytes], Hashable] | None = None
    """The value by which the watch cache indexes objects, read from their stored JSON."""
    info: Kind = field(kw_only=True, repr=False)
    """Its row in the table of kinds."""

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def qualified_name(self) -> str:
        """As error texts call it: `pods`, `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def gvk(self, version: str) -> GroupVersionKind:
        return _gvk(self.group, version, self.kind)

    def subresource(self, name: str) -> Subresource | None:
        return next((part for part in self.subresources if part.name == name), None)


_gvk: Final = cache(GroupVersionKind)

STATUS: Final = Subresource("status")
SCALE: Final = Subresource("scale", kind=GroupVersionKind("autoscaling", "v1", "Scale"))
BINDING: Final = Subresource("binding", ("create",), GroupVersionKind("", "v1", "Binding"))
EVICTION: Final = Subresource("eviction", ("create",), GroupVersionKind("policy", "v1", "Eviction"))
TOKEN: Final = Subresource(
    "token", ("create",), GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
)
FINALIZE: Final = Subresource("finalize", ("update",))

_V1: Final = ("v1",)
_EVENT_FIELDS: Final = {
    "involvedObject.kind": "involvedObject.kind",
    "involvedObject.namespace": "involvedObject.namespace",
    "involvedObject.name": "involvedObject.name",
    "involvedObject.uid": "involvedObject.uid",
    "involvedObject.apiVersion": "involvedObject.apiVersion",
    "involvedObject.resourceVersion": "involvedObject.resourceVersion",
    "involvedObject.fieldPath": "involvedObject.fieldPath",
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "source.component",
    "type": "type",
}
_NEW_EVENT_FIELDS: Final = {
    name.replace("involvedObject", "regarding").replace("Component", "Controller"): path
    for name, path in _EVENT_FIELDS.items()
    if name != "source"
}
_POD_FIELDS: Final = {
    "spec.nodeName": "spec.nodeName",
    "spec.restartPolicy": "spec.restartPolicy",
    "spec.schedulerName": "spec.schedulerName",
    "spec.serviceAccountName": "spec.serviceAccountName",
    "spec.hostNetwork": "spec.hostNetwork",
    "status.phase": "status.phase",
    "status.podIP": "status.podIP",
    "status.nominatedNodeName": "status.nominatedNodeName",
}
_SLICE_FIELDS: Final = {
    "spec.nodeName": "spec.nodeName",
    "spec.driver": "spec.driver",
    "spec.pool.name": "spec.pool.name",
}


class _Serving(NamedTuple):
    """How a kind is served beyond what its row says."""

    subresources: tuple[Subresource, ...] = ()
    fields: Mapping[str, str] = {}
    verbs: tuple[str, ...] = VERBS
    deleted_shown_in: tuple[str, ...] = ()


_SERVING: Final[Mapping[tuple[str, str], _Serving]] = {
    ("", "Event"): _Serving(fields=_EVENT_FIELDS),
    ("", "Namespace"): _Serving(
        (FINALIZE, STATUS),
        {"status.phase": "status.phase"},
        tuple(verb for verb in VERBS if verb != "deletecollection"),
    ),
    ("", "Node"): _Serving((STATUS,), {"spec.unschedulable": "spec.unschedulable"}),
    ("", "PersistentVolumeClaim"): _Serving((STATUS,), deleted_shown_in=_V1),
    ("", "PersistentVolume"): _Serving((STATUS,), deleted_shown_in=_V1),
    ("", "Pod"): _Serving((BINDING, EVICTION, STATUS), _POD_FIELDS, deleted_shown_in=_V1),
    ("", "PodTemplate"): _Serving(deleted_shown_in=_V1),
    ("", "ReplicationController"): _Serving(
        (SCALE, STATUS), {"status.replicas": "status.replicas"}
    ),
    ("", "ResourceQuota"): _Serving((STATUS,), deleted_shown_in=_V1),
    ("", "Secret"): _Serving(fields={"type": "type"}),
    ("", "ServiceAccount"): _Serving((TOKEN,), deleted_shown_in=_V1),
    ("", "Service"): _Serving(
        (STATUS,),
        {"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
        deleted_shown_in=_V1,
    ),
    ("apps", "DaemonSet"): _Serving((STATUS,)),
    ("apps", "Deployment"): _Serving((SCALE, STATUS)),
    ("apps", "ReplicaSet"): _Serving((SCALE, STATUS), {"status.replicas": "status.replicas"}),
    ("apps", "StatefulSet"): _Serving((SCALE, STATUS)),
    ("events.k8s.io", "Event"): _Serving(fields=_NEW_EVENT_FIELDS),
    ("batch", "CronJob"): _Serving((STATUS,)),
    ("batch", "Job"): _Serving((STATUS,), {"status.successful": "status.succeeded"}),
    ("policy", "PodDisruptionBudget"): _Serving((STATUS,)),
    ("storage.k8s.io", "CSIDriver"): _Serving(deleted_shown_in=_V1),
    ("storage.k8s.io", "CSINode"): _Serving(deleted_shown_in=_V1),
    ("storage.k8s.io", "StorageClass"): _Serving(deleted_shown_in=_V1),
    ("storage.k8s.io", "VolumeAttachment"): _Serving((STATUS,), deleted_shown_in=_V1),
    ("storage.k8s.io", "VolumeAttributesClass"): _Serving(deleted_shown_in=_V1),
    (DRA, "ResourceClaim"): _Serving((STATUS,), deleted_shown_in=("v1", "v1beta2", "v1beta1")),
    (DRA, "ResourceClaimTemplate"): _Serving(deleted_shown_in=("v1", "v1beta2", "v1beta1")),
    (DRA, "ResourceSlice"): _Serving(
        fields=_SLICE_FIELDS, deleted_shown_in=("v1", "v1beta2", "v1beta1")
    ),
    (DRA, "DeviceClass"): _Serving(deleted_shown_in=("v1", "v1beta2", "v1beta1")),
    (DRA, "DeviceTaintRule"): _Serving((STATUS,), deleted_shown_in=("v1beta2", "v1alpha3")),
    (DRA, "ResourcePoolStatusRequest"): _Serving(
        (STATUS,), deleted_shown_in=("v1alpha3", "v1alpha1")
    ),
}


def _resource(kind: Kind) -> Resource:
    serving = _SERVING.get((kind.group, kind.name), _Serving())
    return Resource(
        kind.group,
        kind.name,
        kind.plural,
        kind.versions,
        kind.namespaced,
        kind.short_names,
        kind.categories,
        *serving,
        stored_as=kind.stored_as,
        index=pool_of if kind.name == "ResourceSlice" else None,
        info=kind,
    )


RESOURCES: Final = tuple(map(_resource, KINDS))


def preference(version: str) -> tuple[int, int, int]:
    """Stable before beta before alpha, newer before older."""
    number, stage, minor = _parts(version)
    return (stage, -number, -minor)


def _parts(version: str) -> tuple[int, int, int]:
    for stage, word in ((1, "beta"), (2, "alpha")):
        number, found, minor = version[1:].partition(word)
        if found:
            return int(number), stage, int(minor)
    return int(version[1:]), 0, 0


_BY_PLURAL: Final = {
    (resource.group, version, resource.plural): resource
    for resource in RESOURCES
    for version in resource.versions
}
_BY_KIND: Final = {
    resource.gvk(version): resource for resource in RESOURCES for version in resource.versions
}


def find(group_version: GroupVersion, plural: str) -> Resource | None:
    """The resource with this name in a URL."""
    return _BY_PLURAL.get((*group_version, plural))


def find_kind(gvk: GroupVersionKind) -> Resource | None:
    return _BY_KIND.get(gvk)
