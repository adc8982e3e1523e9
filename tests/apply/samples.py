"""A valid object of every kind that is served, and how its path looks."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
_META: Document = {"name": "x"}
_TEMPLATE: Document = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
_WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_CLAIM = {
    "devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
        "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": [1], "b": 1}}}],
    }
}
_FLAT_CLAIM = {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}


def _of(path: str, kind: str, **fields: Any) -> tuple[str, Document]:
    parts = path.strip("/").split("/")
    version = parts[1] if parts[0] == "api" else f"{parts[1]}/{parts[2]}"
    return path, {"apiVersion": version, "kind": kind, "metadata": dict(_META), **fields}


def _annotated(made: tuple[str, Document]) -> tuple[str, Document]:
    """Kubernetes adds labels and annotations to some kinds."""
    more = {"labels": {"z": "1"}, "annotations": {"z": "1"}}
    return made[0], {**made[1], "metadata": {**_META, **more}}


_CORE = "/api/v1/namespaces/default/"
_APPS = "/apis/apps/v1/namespaces/default/"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/"
_STORAGE = "/apis/storage.k8s.io/v1/"
_DRA = "/apis/resource.k8s.io/"

SAMPLES: tuple[tuple[str, Document], ...] = (
    _of(_CORE + "configmaps", "ConfigMap", data={"k": "v"}, binaryData={"b": "AAA="}),
    _of(_CORE + "secrets", "Secret", stringData={"k": "v"}, data={"d": "AAA="}),
    _of(
        _CORE + "endpoints",
        "Endpoints",
        subsets=[{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}],
    ),
    _of(
        _CORE + "events",
        "Event",
        involvedObject={"kind": "Pod", "name": "p", "namespace": "NS"},
        reason="r",
        message="m",
        type="Normal",
    ),
    _of(
        _CORE + "limitranges",
        "LimitRange",
        spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    ),
    _of("/api/v1/namespaces", "Namespace"),
    _of("/api/v1/nodes", "Node", spec={"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}),
    _of(
        _CORE + "persistentvolumeclaims",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    _of(
        "/api/v1/persistentvolumes",
        "PersistentVolume",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},  # noqa: S108
        },
    ),
    _of(
        _CORE + "pods",
        "Pod",
        spec={
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "command": ["a"],
                    "ports": [
                        {"containerPort": 80},
                        {"containerPort": 80, "protocol": "UDP", "name": "u"},
                    ],
                    "env": [{"name": "A", "value": "b"}, {"name": "<a&b>", "value": "x"}],
                    "resources": {"claims": [{"name": "g"}], "limits": {"cpu": "500m"}},
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                }
            ],
            "nodeSelector": {"a": "b"},
            "resourceClaims": [{"name": "g", "resourceClaimName": "x"}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
        status={"phase": "Running"},
    ),
    _of(_CORE + "podtemplates", "PodTemplate", template=_TEMPLATE),
    _of(
        _CORE + "replicationcontrollers",
        "ReplicationController",
        spec={"selector": {"a": "b"}, "replicas": 0, "template": _TEMPLATE},
    ),
    _of(_CORE + "resourcequotas", "ResourceQuota", spec={"hard": {"pods": "100"}}),
    _of(_CORE + "serviceaccounts", "ServiceAccount", secrets=[{"name": "s"}]),
    _of(
        _CORE + "services",
        "Service",
        spec={"ports": [{"port": 80, "name": "h"}], "selector": {"a": "b"}},
    ),
    _of(_APPS + "controllerrevisions", "ControllerRevision", revision=1, data={"a": {"b": [1]}}),
    _annotated(_of(_APPS + "daemonsets", "DaemonSet", spec=_WORKLOAD)),
    _of(_APPS + "deployments", "Deployment", spec={"replicas": 0, **_WORKLOAD}),
    _of(_APPS + "replicasets", "ReplicaSet", spec={"replicas": 0, **_WORKLOAD}),
    _of(_APPS + "statefulsets", "StatefulSet", spec={"replicas": 0, **_WORKLOAD}),
    _annotated(
        _of(
            "/apis/batch/v1/namespaces/default/jobs",
            "Job",
            spec={"template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}},
        )
    ),
    _of(
        "/apis/batch/v1/namespaces/default/cronjobs",
        "CronJob",
        spec={
            "schedule": "* * * * *",
            "jobTemplate": {
                "spec": {"template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}}
            },
        },
    ),
    _of(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "PodDisruptionBudget",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    ),
    _of(
        _RBAC + "namespaces/default/roles",
        "Role",
        rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    ),
    _of(
        _RBAC + "namespaces/default/rolebindings",
        "RoleBinding",
        subjects=[{"kind": "User", "name": "u"}],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
    ),
    _of(
        _RBAC + "clusterroles",
        "ClusterRole",
        rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    ),
    _of(
        _RBAC + "clusterrolebindings",
        "ClusterRoleBinding",
        subjects=[{"kind": "User", "name": "u"}],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
    ),
    _of(_STORAGE + "csidrivers", "CSIDriver", spec={"attachRequired": True}),
    _of(
        _STORAGE + "csinodes",
        "CSINode",
        spec={"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["t"]}]},
    ),
    _of(
        _STORAGE + "namespaces/default/csistoragecapacities",
        "CSIStorageCapacity",
        storageClassName="sc",
        capacity="1Gi",
    ),
    _of(_STORAGE + "storageclasses", "StorageClass", provisioner="p", parameters={"a": "b"}),
    _of(
        _STORAGE + "volumeattachments",
        "VolumeAttachment",
        spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
    _of(
        _STORAGE + "volumeattributesclasses",
        "VolumeAttributesClass",
        driverName="d",
        parameters={"a": "b"},
    ),
    _of("/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", value=5),
    _of(
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "Lease",
        spec={"holderIdentity": "h", "leaseDurationSeconds": 5},
    ),
    _of("/apis/node.k8s.io/v1/runtimeclasses", "RuntimeClass", handler="h"),
    _of(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.9"]}],
        ports=[{"port": 80, "name": "h"}],
    ),
    _of(_DRA + "v1/namespaces/default/resourceclaims", "ResourceClaim", spec=_CLAIM),
    _of(
        _DRA + "v1/namespaces/default/resourceclaimtemplates",
        "ResourceClaimTemplate",
        spec={"metadata": {"labels": {"l": "m"}}, "spec": _CLAIM},
    ),
    _of(
        _DRA + "v1/deviceclasses",
        "DeviceClass",
        spec={"selectors": [{"cel": {"expression": "true"}}]},
    ),
    _of(
        _DRA + "v1/resourceslices",
        "ResourceSlice",
        spec={
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
            "devices": [{"name": "d0", "attributes": {"a": {"int": 1}}}],
        },
    ),
    _of(
        _DRA + "v1beta2/devicetaintrules",
        "DeviceTaintRule",
        spec={
            "deviceSelector": {"driver": "d.example.com"},
            "taint": {"key": "k", "effect": "NoSchedule"},
        },
    ),
    _of(
        _DRA + "v1alpha3/resourcepoolstatusrequests",
        "ResourcePoolStatusRequest",
        spec={"driver": "d.example.com"},
    ),
    _of(_DRA + "v1beta1/namespaces/default/resourceclaims", "ResourceClaim", spec=_FLAT_CLAIM),
    _of(_DRA + "v1beta2/namespaces/default/resourceclaims", "ResourceClaim", spec=_CLAIM),
)
