"""The table of kinds: the names, scope and versions of every kind that allot knows.

Custom resources have rows, too, but not in this table: each server has its own (`allot.apiserver.kinds.custom_resource`).
The scheme (`allot.api.scheme`), the resources that the API server serves (`allot.apiserver.kinds.resources`) and
those that clients ask for (`allot.client.resources`) are derived from it. A new kind is a new row here. What the API
server does specially for a kind is in `allot/apiserver/kinds/<kind>.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from allot.api import core
from allot.api.base import ApiObject
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.custom_resources import CustomResourceDefinition
from allot.api.identities import GroupVersionKind
from allot.api.pool_status import ResourcePoolStatusRequest
from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.api.slices import ResourceSlice


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind. There is one row per kind, so rows are compared by identity."""

    group: str
    name: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    """The versions it is served in; the first one is preferred."""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    hub: type[ApiObject] | None = None
    """The type of its objects; None for a raw kind, whose objects are JSON documents."""
    view: type[RawObject] = RawObject
    """The accessors of a raw kind's documents."""
    storage_version: str = ""
    """The version it is stored in; the preferred one if empty."""
    stored_as: tuple[str, str] | None = None
    """Group and plural of the kind under which it is stored, if it is another view of that kind."""
    is_stored: bool = True
    """Whether there are objects of it. Reviews are answered and not stored; component statuses are probed."""
    singular: str = ""
    """What one object is called on command lines; the name in lower case if empty."""
    list_name: str = ""
    """The kind of lists of it; the name and `List` if empty."""

    def __post_init__(self) -> None:
        if not self.storage_version:
            object.__setattr__(self, "storage_version", self.versions[0])
        if not self.singular:
            object.__setattr__(self, "singular", self.name.lower())
        if not self.list_name:
            object.__setattr__(self, "list_name", f"{self.name}List")

    @cached_property
    def is_typed(self) -> bool:
        return self.hub is not None

    @property
    def hub_type(self) -> type[ApiObject]:
        """The type of a typed kind's objects."""
        if self.hub is None:
            raise TypeError(f"{self.name} is not a typed kind")
        return self.hub

    @property
    def has_status(self) -> bool:
        """Whether objects of a typed kind have a status."""
        return self.hub is not None and "status" in self.hub.__struct_fields__

    def gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, version, self.name)


_ALL: Final = ("all",)
_admission = partial(
    Kind, "admissionregistration.k8s.io", namespaced=False, categories=("api-extensions",)
)
_core = partial(Kind, "")
_apps = partial(Kind, "apps")
_batch = partial(Kind, "batch")
_authentication = partial(Kind, "authentication.k8s.io", is_stored=False)
_authorization = partial(Kind, "authorization.k8s.io", is_stored=False)
_rbac = partial(Kind, "rbac.authorization.k8s.io")
_storage = partial(Kind, "storage.k8s.io")
_networking = partial(Kind, "networking.k8s.io")
_certificates = partial(Kind, "certificates.k8s.io")
_flow_control = partial(Kind, "flowcontrol.apiserver.k8s.io", namespaced=False)
_dra = partial(Kind, DRA)
_V1_AND_BETAS: Final = ("v1", "v1beta2", "v1beta1")

# fmt: off
KINDS: Final[tuple[Kind, ...]] = (
    _core("Binding", "bindings", is_stored=False),
    _core("ComponentStatus", "componentstatuses", namespaced=False, short_names=("cs",), is_stored=False),
    _core("ConfigMap", "configmaps", short_names=("cm",)),
    _core("Endpoints", "endpoints", short_names=("ep",)),
    _core("Event", "events", short_names=("ev",), view=core.Event),
    _core("LimitRange", "limitranges", short_names=("limits",)),
    _core("Namespace", "namespaces", namespaced=False, short_names=("ns",), view=core.Namespace),
    _core("Node", "nodes", namespaced=False, short_names=("no",), view=core.Node),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",)),
    _core("PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",)),
    _core("Pod", "pods", short_names=("po",), categories=_ALL, view=core.Pod),
    _core("PodTemplate", "podtemplates"),
    _core("ReplicationController", "replicationcontrollers", short_names=("rc",), categories=_ALL),
    _core("ResourceQuota", "resourcequotas", short_names=("quota",), view=core.ResourceQuota),
    _core("Secret", "secrets"),
    _core("ServiceAccount", "serviceaccounts", short_names=("sa",)),
    _core("Service", "services", short_names=("svc",), categories=_ALL),
    _admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    _admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    _apps("ControllerRevision", "controllerrevisions"),
    _apps("DaemonSet", "daemonsets", short_names=("ds",), categories=_ALL),
    _apps("Deployment", "deployments", short_names=("deploy",), categories=_ALL),
    _apps("ReplicaSet", "replicasets", short_names=("rs",), categories=_ALL),
    _apps("StatefulSet", "statefulsets", short_names=("sts",), categories=_ALL),
    Kind("events.k8s.io", "Event", "events", short_names=("ev",), stored_as=("", "events")),
    _authentication("SelfSubjectReview", "selfsubjectreviews", namespaced=False),
    _authentication("TokenReview", "tokenreviews", namespaced=False),
    _authorization("LocalSubjectAccessReview", "localsubjectaccessreviews"),
    _authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False),
    _authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False),
    _authorization("SubjectAccessReview", "subjectaccessreviews", namespaced=False),
    Kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", ("v2", "v1"), short_names=("hpa",),
         categories=_ALL),
    _batch("CronJob", "cronjobs", short_names=("cj",), categories=_ALL),
    _batch("Job", "jobs", categories=_ALL),
    _certificates("CertificateSigningRequest", "certificatesigningrequests", namespaced=False, short_names=("csr",)),
    _certificates("ClusterTrustBundle", "clustertrustbundles", namespaced=False),
    _certificates("PodCertificateRequest", "podcertificaterequests"),
    _flow_control("FlowSchema", "flowschemas"),
    _flow_control("PriorityLevelConfiguration", "prioritylevelconfigurations"),
    _networking("IngressClass", "ingressclasses", namespaced=False),
    _networking("Ingress", "ingresses", short_names=("ing",)),
    _networking("IPAddress", "ipaddresses", namespaced=False, short_names=("ip",)),
    _networking("NetworkPolicy", "networkpolicies", short_names=("netpol",)),
    _networking("ServiceCIDR", "servicecidrs", namespaced=False),
    Kind("apiregistration.k8s.io", "APIService", "apiservices", namespaced=False, categories=("api-extensions",)),
    Kind("storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations", namespaced=False),
    Kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",)),
    Kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False,
         short_names=("crd", "crds"), categories=("api-extensions",), view=CustomResourceDefinition),
    _rbac("ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _rbac("ClusterRole", "clusterroles", namespaced=False),
    _rbac("RoleBinding", "rolebindings"),
    _rbac("Role", "roles"),
    _storage("CSIDriver", "csidrivers", namespaced=False),
    _storage("CSINode", "csinodes", namespaced=False),
    _storage("CSIStorageCapacity", "csistoragecapacities"),
    _storage("StorageClass", "storageclasses", namespaced=False, short_names=("sc",)),
    _storage("VolumeAttachment", "volumeattachments", namespaced=False),
    _storage("VolumeAttributesClass", "volumeattributesclasses", namespaced=False, short_names=("vac",)),
    Kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)),
    Kind("coordination.k8s.io", "Lease", "leases"),
    Kind("node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False),
    Kind("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    _dra("ResourceClaim", "resourceclaims", _V1_AND_BETAS, hub=ResourceClaim),
    _dra("ResourceClaimTemplate", "resourceclaimtemplates", _V1_AND_BETAS, hub=ResourceClaimTemplate),
    _dra("ResourceSlice", "resourceslices", _V1_AND_BETAS, namespaced=False, hub=ResourceSlice),
    _dra("DeviceClass", "deviceclasses", _V1_AND_BETAS, namespaced=False, hub=DeviceClass),
    _dra("DeviceTaintRule", "devicetaintrules", ("v1", "v1beta2", "v1alpha3"), namespaced=False,
         hub=DeviceTaintRule, storage_version="v1beta2"),
    _dra("ResourcePoolStatusRequest", "resourcepoolstatusrequests", ("v1alpha3", "v1alpha1"),
         namespaced=False, short_names=("rpsr",), hub=ResourcePoolStatusRequest),
)
# fmt: on

_BY_PLURAL: Final = {(kind.group, kind.plural): kind for kind in KINDS}
_BY_NAME: Final = {(kind.group, kind.name): kind for kind in KINDS}


def kind_named(group: str, plural: str) -> Kind:
    """The kind with this plural; `KeyError` if there is no such row."""
    return _BY_PLURAL[group, plural]


def find_kind(group: str, name: str) -> Kind | None:
    """The kind with this name, such as `ResourceClaim`."""
    return _BY_NAME.get((group, name))
