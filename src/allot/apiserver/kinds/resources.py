"""The table of everything that can be served: groups, resources, versions, subresources, selectable fields.

Discovery, routes, OpenAPI and storage keys all come from here. A new kind is a new line. What one server serves of
it is in `served`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.resource import GROUP as DRA
from allot.api.scheme import KINDS

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
    same_as: tuple[str, str] | None = None
    """The group and plural under which it is stored, if it is another view of that resource."""

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

_ALL: Final = ("all",)
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


def _core(kind: str, plural: str, **rest: object) -> Resource:
    return Resource("", kind, plural, **rest)  # type: ignore[arg-type]


def _dra_resources() -> Iterable[Resource]:
    for kind in KINDS.values():
        yield Resource(
            DRA,
            kind.name,
            kind.plural,
            tuple(kind.versions),
            kind.namespaced,
            kind.short_names,
            subresources=(STATUS,) if kind.has_status else (),
            fields=_SLICE_FIELDS if kind.name == "ResourceSlice" else {},
            deleted_shown_in=tuple(
                version
                for version in kind.versions
                if (kind.name, version) != ("DeviceTaintRule", "v1")
            ),
        )


RESOURCES: Final[tuple[Resource, ...]] = (
    _core("ConfigMap", "configmaps", short_names=("cm",)),
    _core("Endpoints", "endpoints", short_names=("ep",)),
    _core("Event", "events", short_names=("ev",), fields=_EVENT_FIELDS),
    _core("LimitRange", "limitranges", short_names=("limits",)),
    _core(
        "Namespace",
        "namespaces",
        namespaced=False,
        short_names=("ns",),
        subresources=(FINALIZE, STATUS),
        fields={"status.phase": "status.phase"},
        verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    ),
    _core(
        "Node",
        "nodes",
        namespaced=False,
        short_names=("no",),
        subresources=(STATUS,),
        fields={"spec.unschedulable": "spec.unschedulable"},
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        short_names=("pvc",),
        subresources=(STATUS,),
        deleted_shown_in=_V1,
    ),
    _core(
        "PersistentVolume",
        "persistentvolumes",
        namespaced=False,
        short_names=("pv",),
        subresources=(STATUS,),
        deleted_shown_in=_V1,
    ),
    _core(
        "Pod",
        "pods",
        short_names=("po",),
        categories=_ALL,
        subresources=(BINDING, EVICTION, STATUS),
        fields=_POD_FIELDS,
        deleted_shown_in=_V1,
    ),
    _core(
        "PodTemplate",
        "podtemplates",
        deleted_shown_in=_V1,
    ),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        short_names=("rc",),
        categories=_ALL,
        subresources=(SCALE, STATUS),
        fields={"status.replicas": "status.replicas"},
    ),
    _core(
        "ResourceQuota",
        "resourcequotas",
        short_names=("quota",),
        subresources=(STATUS,),
        deleted_shown_in=_V1,
    ),
    _core("Secret", "secrets", fields={"type": "type"}),
    _core(
        "ServiceAccount",
        "serviceaccounts",
        short_names=("sa",),
        subresources=(TOKEN,),
        deleted_shown_in=_V1,
    ),
    _core(
        "Service",
        "services",
        short_names=("svc",),
        categories=_ALL,
        subresources=(STATUS,),
        fields={"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"},
        deleted_shown_in=_V1,
    ),
    Resource("apps", "ControllerRevision", "controllerrevisions"),
    Resource(
        "apps",
        "DaemonSet",
        "daemonsets",
        short_names=("ds",),
        categories=_ALL,
        subresources=(STATUS,),
    ),
    Resource(
        "apps",
        "Deployment",
        "deployments",
        short_names=("deploy",),
        categories=_ALL,
        subresources=(SCALE, STATUS),
    ),
    Resource(
        "apps",
        "ReplicaSet",
        "replicasets",
        short_names=("rs",),
        categories=_ALL,
        subresources=(SCALE, STATUS),
        fields={"status.replicas": "status.replicas"},
    ),
    Resource(
        "apps",
        "StatefulSet",
        "statefulsets",
        short_names=("sts",),
        categories=_ALL,
        subresources=(SCALE, STATUS),
    ),
    Resource(
        "events.k8s.io",
        "Event",
        "events",
        short_names=("ev",),
        fields=_NEW_EVENT_FIELDS,
        same_as=("", "events"),
    ),
    Resource(
        "batch",
        "CronJob",
        "cronjobs",
        short_names=("cj",),
        categories=_ALL,
        subresources=(STATUS,),
    ),
    Resource(
        "batch",
        "Job",
        "jobs",
        categories=_ALL,
        subresources=(STATUS,),
        fields={"status.successful": "status.succeeded"},
    ),
    Resource(
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short_names=("pdb",),
        subresources=(STATUS,),
    ),
    Resource(
        "rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
    ),
    Resource("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", namespaced=False),
    Resource("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
    Resource("rbac.authorization.k8s.io", "Role", "roles"),
    Resource(
        "storage.k8s.io",
        "CSIDriver",
        "csidrivers",
        namespaced=False,
        deleted_shown_in=_V1,
    ),
    Resource(
        "storage.k8s.io",
        "CSINode",
        "csinodes",
        namespaced=False,
        deleted_shown_in=_V1,
    ),
    Resource("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities"),
    Resource(
        "storage.k8s.io",
        "StorageClass",
        "storageclasses",
        namespaced=False,
        short_names=("sc",),
        deleted_shown_in=_V1,
    ),
    Resource(
        "storage.k8s.io",
        "VolumeAttachment",
        "volumeattachments",
        namespaced=False,
        subresources=(STATUS,),
        deleted_shown_in=_V1,
    ),
    Resource(
        "storage.k8s.io",
        "VolumeAttributesClass",
        "volumeattributesclasses",
        namespaced=False,
        short_names=("vac",),
        deleted_shown_in=_V1,
    ),
    Resource(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        namespaced=False,
        short_names=("pc",),
    ),
    Resource("coordination.k8s.io", "Lease", "leases"),
    Resource("node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False),
    Resource("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    *_dra_resources(),
)


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
