"""Objects out of which attacks are made, and where the API has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Manifest = dict[str, Any]

DRIVER: Final = "bomb.example.com"
CLASS: Final = "bomb"
NODE: Final = "ordinary-0"
"""One of the nodes on which ordinary pods run."""
RESOURCE: Final = "resource.k8s.io/v1"
_NAMESPACE: Final = "/namespaces/default"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_COLLECTIONS: Final = {
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": f"/api/v1{_NAMESPACE}/configmaps",
    "CronJob": f"/apis/batch/v1{_NAMESPACE}/cronjobs",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DaemonSet": f"/apis/apps/v1{_NAMESPACE}/daemonsets",
    "Deployment": f"/apis/apps/v1{_NAMESPACE}/deployments",
    "DeviceClass": f"/apis/{RESOURCE}/deviceclasses",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1beta2/devicetaintrules",
    "Event": f"/api/v1{_NAMESPACE}/events",
    "HorizontalPodAutoscaler": f"/apis/autoscaling/v2{_NAMESPACE}/horizontalpodautoscalers",
    "Job": f"/apis/batch/v1{_NAMESPACE}/jobs",
    "MutatingAdmissionPolicy": f"{_ADMISSION}/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": f"{_ADMISSION}/mutatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "Namespace": "/api/v1/namespaces",
    "Pod": f"/api/v1{_NAMESPACE}/pods",
    "PodDisruptionBudget": f"/apis/policy/v1{_NAMESPACE}/poddisruptionbudgets",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ReplicaSet": f"/apis/apps/v1{_NAMESPACE}/replicasets",
    "ResourceClaim": f"/apis/{RESOURCE}{_NAMESPACE}/resourceclaims",
    "ResourceClaimTemplate": f"/apis/{RESOURCE}{_NAMESPACE}/resourceclaimtemplates",
    "ResourcePoolStatusRequest": "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
    "ResourceQuota": f"/api/v1{_NAMESPACE}/resourcequotas",
    "ResourceSlice": f"/apis/{RESOURCE}/resourceslices",
    "StatefulSet": f"/apis/apps/v1{_NAMESPACE}/statefulsets",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
}


def collection_of(manifest: Manifest) -> str:
    return collection(manifest["kind"])


def collection(kind: str) -> str:
    """The path of all objects of a kind, in the namespace `default` if it has namespaces."""
    return _COLLECTIONS[kind]


def path_of(manifest: Manifest) -> str:
    return f"{collection_of(manifest)}/{manifest['metadata']['name']}"


def device_class(*selectors: str, name: str = CLASS) -> Manifest:
    spec = {"selectors": [selector(each) for each in (f'device.driver == "{DRIVER}"', *selectors)]}
    return _manifest("DeviceClass", name, spec)


def selector(expression: str) -> Manifest:
    return {"cel": {"expression": expression}}


def device(name: str, attributes: Mapping[str, Any] | None = None, **more: Any) -> Manifest:
    """`attributes` are texts, numbers and truth values."""
    found: Manifest = {"name": name, **more}
    if attributes:
        found["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    return found


def _attribute(value: Any) -> Manifest:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def slices(
    devices: Sequence[Manifest],
    *,
    shared_counters: Sequence[Manifest] = (),
    pool: str = "bombs",
    per_slice: int = 64,
    node: str = NODE,
) -> list[Manifest]:
    """One pool on a node, in as many slices as it takes."""
    chunks = [devices[at : at + per_slice] for at in range(0, len(devices), per_slice)]
    contents = [{"devices": list(chunk)} for chunk in chunks]
    if shared_counters:
        contents.append({"sharedCounters": list(shared_counters)})
    spec = {"driver": DRIVER, "nodeName": node}
    head = {"name": pool, "generation": 1, "resourceSliceCount": len(contents)}
    return [
        _manifest("ResourceSlice", f"{pool}-{number}", {**spec, "pool": head, **content})
        for number, content in enumerate(contents)
    ]


def request(
    name: str, count: int = 1, *selectors: str, device_class_name: str = CLASS, **more: Any
) -> Manifest:
    return {"name": name, "exactly": _exactly(count, selectors, device_class_name) | more}


def alternatives(name: str, *each: Manifest) -> Manifest:
    return {"name": name, "firstAvailable": list(each)}


def alternative(
    name: str, count: int = 1, *selectors: str, device_class_name: str = CLASS, **more: Any
) -> Manifest:
    return {"name": name} | _exactly(count, selectors, device_class_name) | more


def _exactly(count: int, selectors: Iterable[str], device_class_name: str) -> Manifest:
    found: Manifest = {"deviceClassName": device_class_name}
    if count:
        found["count"] = count
    else:
        found["allocationMode"] = "All"
    if selectors:
        found["selectors"] = [selector(each) for each in selectors]
    return found


def distinct(attribute: str, *requests: str) -> Manifest:
    return {"distinctAttribute": _qualified(attribute), "requests": list(requests)}


def match(attribute: str, *requests: str) -> Manifest:
    return {"matchAttribute": _qualified(attribute), "requests": list(requests)}


def _qualified(attribute: str) -> str:
    return f"{DRIVER}/{attribute}"


def claim(
    requests: Sequence[Manifest], constraints: Sequence[Manifest] = (), name: str = "bomb-claim"
) -> Manifest:
    devices: Manifest = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = list(constraints)
    return _manifest("ResourceClaim", name, {"devices": devices})


def pod(name: str = "bomb", claim_name: str = "bomb-claim") -> Manifest:
    container = {"name": "c", "image": "pause", "resources": {"claims": [{"name": "devices"}]}}
    claims = [{"name": "devices", "resourceClaimName": claim_name}]
    return _manifest("Pod", name, {"containers": [container], "resourceClaims": claims})


def config_map(name: str, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}


def deployment(name: str, replicas: int, **pod_spec: Any) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def pool_status_request(name: str, limit: int) -> Manifest:
    found = _manifest("ResourcePoolStatusRequest", name, {"driver": DRIVER, "limit": limit})
    found["apiVersion"] = "resource.k8s.io/v1alpha3"
    return found


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    version = "v1" if kind == "Pod" else RESOURCE
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
