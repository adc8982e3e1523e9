"""A clone has what scheduling reads, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from allot.api.raw import RawObject
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import type_named, type_of
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.questions.cluster_clone import clone_cluster, read_configuration
from allot.questions.observed_cluster import KINDS
from allot.questions.scheduling_fields import SCHEDULING_FIELDS
from allot.rules import RuleSet
from allot.testing.observed_clusters import snapshot_of

MARKER = "m4rk3r"
LONGEST_PATH = 14
"""Deeper fields repeat types that were filled above."""

METADATA = {
    "name", "namespace", "uid", "labels.*", "ownerReferences.apiVersion", "ownerReferences.kind",
    "ownerReferences.name", "ownerReferences.uid",
}  # fmt: skip
SELECTOR = {
    "matchLabels.*", "matchExpressions.key", "matchExpressions.operator", "matchExpressions.values",
}  # fmt: skip
NODE_TERM = {
    f"{part}.{field}"
    for part in ("matchExpressions", "matchFields")
    for field in ("key", "operator", "values")
}
TOLERATION = {"key", "operator", "value", "effect"}
TAINT = {"key", "value", "effect"}


def below(path: str, fields: set[str]) -> set[str]:
    return {f"{path}.{field}" for field in fields}


POD_TERM = {
    *below("labelSelector", SELECTOR), *below("namespaceSelector", SELECTOR), "namespaces",
    "topologyKey", "matchLabelKeys", "mismatchLabelKeys",
}  # fmt: skip
AFFINITY = {
    *below("requiredDuringSchedulingIgnoredDuringExecution", POD_TERM),
    *below("preferredDuringSchedulingIgnoredDuringExecution.podAffinityTerm", POD_TERM),
}
CONTAINER = {
    "name", "resources.claims.name", "resources.claims.request", "restartPolicy",
    "ports.hostIP", "ports.protocol",
}  # fmt: skip
VOLUME_CLAIM = {
    "accessModes", "storageClassName", "volumeMode", "volumeName", *below("selector", SELECTOR),
}  # fmt: skip
POD_SPEC = {
    "nodeName", "nodeSelector.*", "schedulerName", "priorityClassName", "preemptionPolicy", "restartPolicy",
    *below("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", NODE_TERM),
    *below("affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference", NODE_TERM),
    *below("affinity.podAffinity", AFFINITY), *below("affinity.podAntiAffinity", AFFINITY),
    *below("topologySpreadConstraints.labelSelector", SELECTOR),
    *below(
        "topologySpreadConstraints",
        {"topologyKey", "whenUnsatisfiable", "matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy"},
    ),
    *below("tolerations", TOLERATION), "schedulingGates.name",
    *below("containers", CONTAINER), *below("initContainers", CONTAINER),
    "resources.claims.name", "resources.claims.request",
    *below("resourceClaims", {"name", "resourceClaimName", "resourceClaimTemplateName"}),
    "volumes.name", "volumes.persistentVolumeClaim.claimName",
    *below("volumes.ephemeral.volumeClaimTemplate.spec", VOLUME_CLAIM),
}  # fmt: skip
TEMPLATE = {"metadata.labels.*", *below("spec", POD_SPEC)}
WORKLOAD = {*below("spec.selector", SELECTOR), *below("spec.template", TEMPLATE)}
CONDITION = {"type", "status", "reason"}
REQUEST = {
    "deviceClassName", "allocationMode", "selectors.cel.expression", *below("tolerations", TOLERATION),
    "derivedAttributes.name", "derivedAttributes.expression",
}  # fmt: skip
CLAIM_SPEC = below(
    "devices",
    {
        "requests.name", *below("requests.exactly", REQUEST), "requests.firstAvailable.name",
        *below("requests.firstAvailable", REQUEST),
        *below("constraints", {"requests", "matchAttribute", "distinctAttribute"}),
        "config.requests", "config.opaque.driver",
    },
)  # fmt: skip
SCHEDULING_NEEDS: dict[str, set[str]] = {
    "Namespace": set(),
    "Node": {
        *below("spec.taints", TAINT), "status.conditions.type", "status.conditions.status",
        "status.declaredFeatures",
    },
    "Pod": {
        *below("spec", POD_SPEC), "status.phase", *below("status.conditions", CONDITION),
        "status.nominatedNodeName",
        *below("status.resourceClaimStatuses", {"name", "resourceClaimName"}),
        "status.extendedResourceClaimStatus.resourceClaimName",
        *below(
            "status.extendedResourceClaimStatus.requestMappings",
            {"containerName", "resourceName", "requestName"},
        ),
        *below(
            "status.nodeAllocatableResourceClaimStatuses",
            {"resourceClaimName", "containers", "mapping.name", "overhead.name"},
        ),
    },
    "ResourceClaim": {
        *below("spec", CLAIM_SPEC),
        *below(
            "status.allocation.devices.results",
            {
                "request", "driver", "pool", "device", "shareID", "bindingConditions",
                "bindingFailureConditions", "skipNodeOperations", *below("tolerations", TOLERATION),
            },
        ),
        *below("status.allocation.devices.config", {"source", "requests", "opaque.driver"}),
        *below("status.allocation.nodeSelector.nodeSelectorTerms", NODE_TERM),
        *below("status.reservedFor", {"apiGroup", "resource", "name", "uid"}),
        *below(
            "status.devices",
            {"driver", "pool", "device", "shareID", "conditions.type", "conditions.status"},
        ),
    },
    "ResourceClaimTemplate": {"spec.metadata.labels.*", *below("spec.spec", CLAIM_SPEC)},
    "ResourceSlice": below(
        "spec",
        {
            "driver", "partitionTypeAttribute", "skipNodeOperations", "pool.name", "nodeName",
            *below("nodeSelector.nodeSelectorTerms", NODE_TERM), "sharedCounters.name",
            *below(
                "devices",
                {
                    "name", "bindingConditions", "bindingFailureConditions", "nodeName",
                    *below("nodeSelector.nodeSelectorTerms", NODE_TERM), *below("taints", TAINT),
                    *below("attributes.*", {"string", "strings", "version", "versions"}),
                    "consumesCounters.counterSet", "consumesCounters.compatibilityGroups",
                    "nodeAllocatableResources.*.mapping.capacityKey",
                },
            ),
        },
    ),
    "DeviceClass": below(
        "spec", {"selectors.cel.expression", "config.opaque.driver", "extendedResourceName"}
    ),
    "DeviceTaintRule": {
        *below("spec.deviceSelector", {"driver", "pool", "device"}), *below("spec.taint", TAINT),
    },
    "PersistentVolumeClaim": {*below("spec", VOLUME_CLAIM), "status.phase", "status.accessModes"},
    "PersistentVolume": {
        *below(
            "spec",
            {
                "accessModes", "storageClassName", "volumeMode", "persistentVolumeReclaimPolicy",
                *below("claimRef", {"name", "namespace", "uid"}),
                *below("nodeAffinity.required.nodeSelectorTerms", NODE_TERM),
                "csi.driver", "csi.volumeHandle",
            },
        ),
        "status.phase",
    },
    "StorageClass": {
        "provisioner", "volumeBindingMode", "reclaimPolicy",
        *below("allowedTopologies.matchLabelExpressions", {"key", "values"}),
    },
    "CSIStorageCapacity": {"storageClassName", *below("nodeTopology", SELECTOR)},
    "CSIDriver": set(),
    "CSINode": {"spec.drivers.name", "spec.drivers.topologyKeys"},
    "VolumeAttachment": {"spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName"},
    "Service": {"spec.selector.*", "spec.ports.name", "spec.ports.protocol"},
    "ReplicationController": {"spec.selector.*", *below("spec.template", TEMPLATE)},
    "ReplicaSet": WORKLOAD,
    "StatefulSet": {*WORKLOAD, "spec.serviceName", "spec.podManagementPolicy"},
    "Deployment": WORKLOAD,
    "DaemonSet": WORKLOAD,
    "Job": {
        *WORKLOAD, "spec.completionMode", "status.completedIndexes",
        *below("status.conditions", CONDITION),
    },
    "PodDisruptionBudget": below("spec.selector", SELECTOR),
    "PriorityClass": {"preemptionPolicy"},
    "ResourceQuota": {
        "spec.scopes",
        *below("spec.scopeSelector.matchExpressions", {"scopeName", "operator", "values"}),
    },
}  # fmt: skip
"""By kind, the fields besides metadata that may have a string of the cluster. Anything else is a leak."""


def filled(schema: Type, depth: int = 0) -> dict[str, Any]:
    """An object of the type with the marker in every string field; maps have one entry with a plain key."""
    found = {}
    for name, field in schema.fields.items():
        value = _filled(field, depth)
        if value is not None:
            found[name] = value
    return found


def _filled(field: Field, depth: int) -> Any:
    value: Any
    if field.is_type:
        value = filled(type_named(field.type), depth + 1) if depth < LONGEST_PATH else None
    else:
        value = {
            "string": MARKER, "bytes": MARKER, "quantity": "1", "integer": 1, "number": 1, "boolean": True,
            "time": "2026-01-01T00:00:00Z", "microtime": "2026-01-01T00:00:00.000000Z", "int-or-string": 1,
            "any": {"inner": MARKER}, "json": {"inner": MARKER}, "strings": [MARKER],
        }.get(field.type)  # fmt: skip
    if value is None:
        return None
    return {"": value, "list": [value], "map": {"key": value}}[field.container]


def marked(value: Any, path: str = "") -> Iterator[str]:
    """Where the marker is, without indexes; keys of maps are `*`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from marked(
                inner, f"{path}.{'*' if name == 'key' and inner_is_map(value) else name}"
            )
    elif isinstance(value, list):
        for inner in value:
            yield from marked(inner, path)
    elif isinstance(value, str) and MARKER in value:
        yield path.removeprefix(".")


def inner_is_map(value: dict[str, Any]) -> bool:
    """Whether this is a map with arbitrary keys, as `filled` writes them."""
    return len(value) == 1


def a_marked_object(resource: Resource[Any]) -> Any:
    schema = type_of(resource.gvk)
    assert schema is not None
    data = filled(schema)
    data["metadata"]["annotations"] = {"any": MARKER, "kubectl.kubernetes.io/last": MARKER}
    data["metadata"]["finalizers"] = [MARKER]
    return resource.codec.decode(msgspec.json.encode(data))


@pytest.mark.parametrize("resource", SCHEDULING_FIELDS, ids=lambda resource: resource.kind)
def test_only_fields_that_scheduling_needs(resource: Resource[Any]) -> None:
    snapshot = Snapshot()
    obj = a_marked_object(resource)
    assert len(set(marked(json.loads(resource.codec.encode(obj))))) > 5
    snapshot.put(resource, obj)
    (clone,) = clone_cluster(snapshot)
    allowed = below("metadata", METADATA) | SCHEDULING_NEEDS[resource.kind]
    assert set(marked(clone)) - allowed == set(), "not needed for scheduling"
    assert allowed - set(marked(clone)) - _absent(resource) == set(), "needed, and missing"


def _absent(resource: Resource[Any]) -> set[str]:
    """Fields of the list that the kind does not have."""
    has = set(marked(json.loads(resource.codec.encode(a_marked_object(resource)))))
    allowed = below("metadata", METADATA) | SCHEDULING_NEEDS[resource.kind]
    return allowed - has


def test_every_kind_that_questions_read_is_cloned() -> None:
    assert set(SCHEDULING_FIELDS) == set(KINDS)


# --- driver parameters ---


def a_class(**parameters: Any) -> Any:
    data = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"config": [{"opaque": {"driver": "d", "parameters": parameters}}]},
    }
    return resources.DEVICE_CLASSES.codec.decode(json.dumps(data).encode())


def hash_of(salt: bytes, **parameters: Any) -> Any:
    (found,) = clone_cluster(snapshot_of(a_class(**parameters)), salt=salt)
    return found["spec"]["config"][0]["opaque"]["parameters"]


def test_parameters_are_a_salted_hash() -> None:
    one = hash_of(b"salt", mode=MARKER, a=1)
    assert list(one) == ["sha256"]
    assert one == hash_of(b"salt", a=1, mode=MARKER)
    assert one != hash_of(b"salt", mode="x", a=1)
    assert one != hash_of(b"other", mode=MARKER, a=1)


# --- other names ---


def an_object(kind: str, name: str, namespace: str = "", **more: Any) -> RawObject:
    resource = next(each for each in KINDS if each.kind == kind)
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{kind}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= more.pop("metadata", {})
    data = {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata, **more}
    decoded: RawObject = resource.codec.decode(json.dumps(data).encode())
    return decoded


def an_anonymous_cluster() -> list[dict[str, Any]]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "secret-set",
        "controller": True,
    }
    device = {"name": "gpu-0", "attributes": {"host": {"string": "secret-node"}}}
    result = {"request": "gpu", "driver": "d", "pool": "secret-node", "device": "gpu-0"}
    expression = "device.attributes['d'].host == 'secret-node' || 'a' == \"b\""
    objects = (
        an_object("Namespace", "secret-space"),
        an_object(
            "Node", "secret-node", metadata={"labels": {"kubernetes.io/hostname": "secret-node"}}
        ),
        an_object("StatefulSet", "secret-set", "secret-space"),
        an_object(
            "Pod",
            "secret-set-0",
            "secret-space",
            metadata={
                "ownerReferences": [{**owner, "uid": "uid-StatefulSet-secret-set"}],
                "labels": {
                    "statefulset.kubernetes.io/pod-name": "secret-set-0",
                    "controller-revision-hash": "secret-set-5f9",
                    "app": "kept",
                },
            },
            spec={
                "nodeName": "secret-node",
                "containers": [{"name": "c", "image": "secret/image"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "secret-claim"}],
            },
        ),
        an_object(
            "ResourceClaim",
            "secret-claim",
            "secret-space",
            spec={
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {
                                "deviceClassName": "gpu",
                                "selectors": [{"cel": {"expression": expression}}],
                            },
                        }
                    ]
                }
            },
            status={
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [
                    {"resource": "pods", "name": "secret-set-0", "uid": "uid-Pod-secret-set-0"}
                ],
            },
        ),
        an_object(
            "ResourceSlice",
            "secret-node-d-x1",
            spec={
                "driver": "d",
                "nodeName": "secret-node",
                "pool": {"name": "secret-node", "generation": 1, "resourceSliceCount": 1},
                "devices": [device],
            },
        ),
    )
    return list(clone_cluster(snapshot_of(*objects), anonymize=True))


def test_anonymous_names_are_consistent() -> None:
    found = {each["kind"]: each for each in an_anonymous_cluster()}
    assert "secret" not in json.dumps(list(found.values()))
    pod, claim, node = found["Pod"], found["ResourceClaim"], found["Node"]
    assert pod["metadata"]["namespace"] == found["Namespace"]["metadata"]["name"]
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
    owner = found["StatefulSet"]["metadata"]
    assert pod["metadata"]["name"] == f"{owner['name']}-0"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["uid"]
    assert pod["metadata"]["labels"] == {
        "statefulset.kubernetes.io/pod-name": pod["metadata"]["name"],
        "app": "kept",
    }
    assert pod["spec"]["resourceClaims"][0]["resourceClaimName"] == claim["metadata"]["name"]
    status = claim["status"]
    assert status["reservedFor"][0]["name"] == pod["metadata"]["name"]
    assert status["reservedFor"][0]["uid"] == pod["metadata"]["uid"]
    spec = found["ResourceSlice"]["spec"]
    assert status["allocation"]["devices"]["results"][0]["pool"] == spec["pool"]["name"]
    assert spec["pool"]["name"] == node["metadata"]["name"]
    host = spec["devices"][0]["attributes"]["host"]["string"]
    selector = claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]
    assert selector["cel"]["expression"] == (
        f"device.attributes['d'].host == '{host}' || 'a' == \"b\""
    )


def test_configuration_of_a_clone() -> None:
    version, gates = read_configuration(
        {"serverVersion": "v1.38.0", "rules": "v1.38", "featureGates": {"A": True}}
    )
    assert (version, gates.rules, gates.states) == ("v1.38.0", RuleSet.V1_38, {"A": True})
    with pytest.raises(ValueError, match="rules"):
        read_configuration({"rules": "no rules"})
