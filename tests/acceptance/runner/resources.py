"""The resources scenarios speak of, and the URLs of references and manifests."""

from __future__ import annotations

from typing import NamedTuple

from tests.acceptance.runner.paths import Json

ALL_NAMESPACES = "*"


class Resource(NamedTuple):
    group: str
    version: str
    """The one meant when a reference names none."""
    name: str
    kind: str
    is_namespaced: bool


DRA, RBAC = "resource.k8s.io", "rbac.authorization.k8s.io"
RESOURCES = (
    Resource("", "v1", "namespaces", "Namespace", False),
    Resource("", "v1", "nodes", "Node", False),
    Resource("", "v1", "pods", "Pod", True),
    Resource("", "v1", "configmaps", "ConfigMap", True),
    Resource("", "v1", "secrets", "Secret", True),
    Resource("", "v1", "events", "Event", True),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True),
    Resource("", "v1", "services", "Service", True),
    Resource("apps", "v1", "deployments", "Deployment", True),
    Resource("apps", "v1", "replicasets", "ReplicaSet", True),
    Resource("batch", "v1", "jobs", "Job", True),
    Resource(DRA, "v1", "resourceclaims", "ResourceClaim", True),
    Resource(DRA, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True),
    Resource(DRA, "v1", "resourceslices", "ResourceSlice", False),
    Resource(DRA, "v1", "deviceclasses", "DeviceClass", False),
    Resource(DRA, "v1", "devicetaintrules", "DeviceTaintRule", False),
    Resource(DRA, "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest", False),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(RBAC, "v1", "roles", "Role", True),
    Resource(RBAC, "v1", "rolebindings", "RoleBinding", True),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
    ),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
)
RESOURCE_BY_NAME = {resource.name: resource for resource in RESOURCES}
RESOURCE_BY_KIND = {resource.kind: resource for resource in RESOURCES}


def group_path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def path_of_reference(reference: str, default_namespace: str) -> str:
    """The path of `[version:]resource[/name[/subresource]][@namespace]`."""
    place, _, namespace = reference.partition("@")
    head, *rest = place.split("/")
    version, _, name = head.rpartition(":")
    resource = RESOURCE_BY_NAME[name]
    path = group_path(resource.group, version or resource.version)
    if resource.is_namespaced and namespace != ALL_NAMESPACES:
        path += f"/namespaces/{namespace or default_namespace}"
    return "/".join([path, name, *rest])


def path_of_collection(manifest: Json, default_namespace: str) -> str:
    """Where a manifest is to be created."""
    resource = RESOURCE_BY_KIND[manifest["kind"]]
    group, _, version = manifest["apiVersion"].rpartition("/")
    path = group_path(group, version)
    if resource.is_namespaced:
        path += f"/namespaces/{manifest['metadata'].get('namespace') or default_namespace}"
    return f"{path}/{resource.name}"
