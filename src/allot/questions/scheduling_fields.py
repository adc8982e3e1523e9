"""The fields of each kind that scheduling reads, and the controllers that keep pods. A clone has no others.

A field is a table of further fields, a list of one table, or a rule for its value (`field_rules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.client import resources
from allot.client.resources import Resource
from allot.questions.field_rules import (
    CLAIM,
    KEPT,
    NAMESPACE,
    NODE,
    OBJECT,
    POD,
    POOL,
    TEMPLATE,
    UID,
    VALUES,
    VOLUME,
    WORKLOAD,
    CelExpression,
    Constant,
    EveryKey,
    Fields,
    Hashed,
    Name,
    Only,
    Rule,
)


def _kept(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, KEPT)


# --- parts that several kinds have ---


def _metadata(name: Rule, **annotations: Any) -> Fields:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": UID,
        "labels": VALUES,
        "annotations": {key.replace("__", "/"): rule for key, rule in annotations.items()},
        "finalizers": Only(
            frozenset(
                {"resource.kubernetes.io/delete-protection", "batch.kubernetes.io/job-tracking"}
            )
        ),
        "ownerReferences": [
            {**_kept("apiVersion", "kind", "controller"), "name": OBJECT, "uid": UID}
        ],
        **_kept("creationTimestamp", "deletionTimestamp"),
    }


_EXPRESSIONS: Final = [{**_kept("key", "operator"), "values": VALUES}]
_LABEL_SELECTOR: Final = {"matchLabels": VALUES, "matchExpressions": _EXPRESSIONS}
_NODE_TERM: Final = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_NODE_SELECTOR: Final = {"nodeSelectorTerms": [_NODE_TERM]}
_POD_TERM: Final = {
    "labelSelector": _LABEL_SELECTOR,
    "namespaceSelector": _LABEL_SELECTOR,
    "namespaces": VALUES,
    **_kept("topologyKey", "matchLabelKeys", "mismatchLabelKeys"),
}
_POD_AFFINITY: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": KEPT, "podAffinityTerm": _POD_TERM}
    ],
}
_RESOURCES: Final = {**_kept("requests", "limits"), "claims": [_kept("name", "request")]}
_CONTAINER: Final = {
    "name": KEPT,
    "image": Constant("image"),
    "resources": _RESOURCES,
    "restartPolicy": KEPT,
    "ports": [_kept("containerPort", "hostPort", "hostIP", "protocol")],
}
_VOLUME_CLAIM_SPEC: Final = {
    **_kept("accessModes", "storageClassName", "volumeMode"),
    "resources": _kept("requests", "limits"),
    "selector": _LABEL_SELECTOR,
    "volumeName": VOLUME,
}
_POD_SPEC: Final = {
    "nodeName": NODE,
    "nodeSelector": VALUES,
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR,
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": KEPT, "preference": _NODE_TERM}
            ],
        },
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
    "topologySpreadConstraints": [
        {
            **_kept("maxSkew", "minDomains", "topologyKey", "whenUnsatisfiable", "matchLabelKeys"),
            **_kept("nodeAffinityPolicy", "nodeTaintsPolicy"),
            "labelSelector": _LABEL_SELECTOR,
        }
    ],
    "tolerations": [_kept("key", "operator", "value", "effect", "tolerationSeconds")],
    "schedulingGates": [_kept("name")],
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "resources": _RESOURCES,
    "resourceClaims": [
        {"name": KEPT, "resourceClaimName": CLAIM, "resourceClaimTemplateName": TEMPLATE}
    ],
    "volumes": [
        {
            "name": KEPT,
            "persistentVolumeClaim": {"claimName": VOLUME, "readOnly": KEPT},
            "ephemeral": {"volumeClaimTemplate": {"spec": _VOLUME_CLAIM_SPEC}},
        }
    ],
    **_kept("schedulerName", "priority", "priorityClassName", "preemptionPolicy", "overhead"),
    **_kept("hostNetwork", "restartPolicy", "terminationGracePeriodSeconds"),
}
_POD_TEMPLATE: Final = {"metadata": {"labels": VALUES}, "spec": _POD_SPEC}
_CONDITIONS: Final = [_kept("type", "status", "reason")]
_REQUEST: Final = {
    **_kept("deviceClassName", "allocationMode", "count", "adminAccess"),
    "selectors": [{"cel": {"expression": CelExpression()}}],
    "tolerations": [_kept("key", "operator", "value", "effect", "tolerationSeconds")],
    "capacity": _kept("requests"),
    "derivedAttributes": [{"name": KEPT, "expression": CelExpression()}],
}
_OPAQUE: Final = {"driver": KEPT, "parameters": Hashed()}
_CLAIM_SPEC: Final = {
    "devices": {
        "requests": [
            {"name": KEPT, "exactly": _REQUEST, "firstAvailable": [{"name": KEPT, **_REQUEST}]}
        ],
        "constraints": [_kept("requests", "matchAttribute", "distinctAttribute")],
        "config": [{"requests": KEPT, "opaque": _OPAQUE}],
    }
}
_TAINT: Final = _kept("key", "value", "effect", "timeAdded")
_COUNTERS: Final = EveryKey(_kept("value"))


def _workload(**more: Any) -> Fields:
    spec = {"selector": _LABEL_SELECTOR, "template": _POD_TEMPLATE, "replicas": KEPT, **more}
    return {"metadata": _metadata(WORKLOAD), "spec": spec}


# --- kinds ---

SCHEDULING_FIELDS: Final[Mapping[Resource[Any], Fields]] = {
    resources.NAMESPACES: {"metadata": _metadata(NAMESPACE)},
    resources.NODES: {
        "metadata": _metadata(NODE),
        "spec": {"unschedulable": KEPT, "taints": [_TAINT]},
        "status": {
            **_kept("capacity", "allocatable", "declaredFeatures"),
            "conditions": [_kept("type", "status")],
        },
    },
    resources.PODS: {
        "metadata": _metadata(POD),
        "spec": _POD_SPEC,
        "status": {
            **_kept("phase", "startTime"),
            "conditions": _CONDITIONS,
            "nominatedNodeName": NODE,
            "resourceClaimStatuses": [{"name": KEPT, "resourceClaimName": CLAIM}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": CLAIM,
                "requestMappings": [_kept("containerName", "resourceName", "requestName")],
            },
            "nodeAllocatableResourceClaimStatuses": [
                {
                    "resourceClaimName": CLAIM,
                    "containers": KEPT,
                    "mapping": [_kept("name", "quantity")],
                    "overhead": [_kept("name", "perPod", "perContainer")],
                }
            ],
        },
    },
    resources.RESOURCE_CLAIMS: {
        "metadata": _metadata(
            CLAIM,
            **{
                "resource.kubernetes.io__pod-claim-name": KEPT,
                "resource.kubernetes.io__extended-resource-claim": KEPT,
            },
        ),
        "spec": _CLAIM_SPEC,
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            **_kept("request", "driver", "device", "adminAccess", "shareID"),
                            **_kept("bindingConditions", "bindingFailureConditions"),
                            **_kept("consumedCapacity", "skipNodeOperations"),
                            "pool": POOL,
                            "tolerations": [
                                _kept("key", "operator", "value", "effect", "tolerationSeconds")
                            ],
                        }
                    ],
                    "config": [{**_kept("source", "requests"), "opaque": _OPAQUE}],
                },
                "nodeSelector": _NODE_SELECTOR,
                "allocationTimestamp": KEPT,
            },
            "reservedFor": [{**_kept("apiGroup", "resource"), "name": POD, "uid": UID}],
            "devices": [
                {
                    **_kept("driver", "device", "shareID"),
                    "pool": POOL,
                    "conditions": [
                        {
                            **_kept("type", "status", "lastTransitionTime"),
                            "reason": Constant("Cloned"),
                        }
                    ],
                }
            ],
        },
    },
    resources.RESOURCE_CLAIM_TEMPLATES: {
        "metadata": _metadata(TEMPLATE),
        "spec": {"metadata": {"labels": VALUES}, "spec": _CLAIM_SPEC},
    },
    resources.RESOURCE_SLICES: {
        "metadata": _metadata(Name("slice")),
        "spec": {
            **_kept("driver", "allNodes", "perDeviceNodeSelection", "partitionTypeAttribute"),
            "skipNodeOperations": KEPT,
            "pool": {"name": POOL, **_kept("generation", "resourceSliceCount")},
            "nodeName": NODE,
            "nodeSelector": _NODE_SELECTOR,
            "sharedCounters": [{"name": KEPT, "counters": _COUNTERS}],
            "devices": [
                {
                    **_kept("name", "allNodes", "bindsToNode", "bindingConditions"),
                    **_kept("bindingFailureConditions", "allowMultipleAllocations"),
                    "attributes": EveryKey(
                        {
                            **_kept("int", "bool", "version", "ints", "bools", "versions"),
                            "string": VALUES,
                            "strings": VALUES,
                        }
                    ),
                    "capacity": EveryKey(
                        {
                            "value": KEPT,
                            "requestPolicy": {
                                **_kept("default", "validValues"),
                                "validRange": _kept("min", "max", "step"),
                            },
                        }
                    ),
                    "consumesCounters": [
                        {**_kept("counterSet", "compatibilityGroups"), "counters": _COUNTERS}
                    ],
                    "nodeName": NODE,
                    "nodeSelector": _NODE_SELECTOR,
                    "taints": [_TAINT],
                    "nodeAllocatableResources": EveryKey(
                        {
                            "mapping": _kept(
                                "capacityKey", "capacityMultiplier", "deviceMultiplier"
                            ),
                            "overhead": _kept("perPod", "perContainer"),
                        }
                    ),
                }
            ],
        },
    },
    resources.DEVICE_CLASSES: {
        "metadata": _metadata(KEPT),
        "spec": {
            "selectors": [{"cel": {"expression": CelExpression()}}],
            "config": [{"opaque": _OPAQUE}],
            "extendedResourceName": KEPT,
        },
    },
    resources.DEVICE_TAINT_RULES: {
        "metadata": _metadata(Name("rule")),
        "spec": {
            "deviceSelector": {**_kept("driver", "device"), "pool": POOL},
            "taint": _TAINT,
        },
    },
    resources.PERSISTENT_VOLUME_CLAIMS: {
        "metadata": _metadata(
            VOLUME,
            **{
                "pv.kubernetes.io__bind-completed": KEPT,
                "volume.kubernetes.io__selected-node": NODE,
                "volume.beta.kubernetes.io__storage-class": KEPT,
            },
        ),
        "spec": _VOLUME_CLAIM_SPEC,
        "status": _kept("phase", "accessModes", "capacity"),
    },
    resources.PERSISTENT_VOLUMES: {
        "metadata": _metadata(VOLUME, **{"volume.beta.kubernetes.io__storage-class": KEPT}),
        "spec": {
            **_kept("accessModes", "capacity", "storageClassName", "volumeMode"),
            "persistentVolumeReclaimPolicy": KEPT,
            "claimRef": {"name": VOLUME, "namespace": NAMESPACE, "uid": UID},
            "nodeAffinity": {"required": _NODE_SELECTOR},
            "csi": {"driver": KEPT, "volumeHandle": VOLUME},
        },
        "status": _kept("phase"),
    },
    resources.STORAGE_CLASSES: {
        "metadata": _metadata(KEPT, **{"storageclass.kubernetes.io__is-default-class": KEPT}),
        **_kept("provisioner", "volumeBindingMode", "reclaimPolicy"),
        "allowedTopologies": [{"matchLabelExpressions": [{"key": KEPT, "values": VALUES}]}],
    },
    resources.CSI_STORAGE_CAPACITIES: {
        "metadata": _metadata(OBJECT),
        **_kept("storageClassName", "capacity", "maximumVolumeSize"),
        "nodeTopology": _LABEL_SELECTOR,
    },
    resources.CSI_DRIVERS: {
        "metadata": _metadata(KEPT),
        "spec": _kept("storageCapacity", "attachRequired"),
    },
    resources.CSI_NODES: {
        "metadata": _metadata(NODE),
        "spec": {
            "drivers": [
                {
                    "name": KEPT,
                    "nodeID": Constant("node"),
                    "allocatable": _kept("count"),
                    "topologyKeys": KEPT,
                }
            ]
        },
    },
    resources.VOLUME_ATTACHMENTS: {
        "metadata": _metadata(OBJECT),
        "spec": {"attacher": KEPT, "nodeName": NODE, "source": {"persistentVolumeName": VOLUME}},
    },
    resources.SERVICES: {
        "metadata": _metadata(WORKLOAD),
        "spec": {"selector": VALUES, "ports": [_kept("port", "protocol", "name")]},
    },
    resources.REPLICATION_CONTROLLERS: _workload(selector=VALUES),
    resources.REPLICA_SETS: _workload(),
    resources.STATEFUL_SETS: _workload(serviceName=WORKLOAD, podManagementPolicy=KEPT),
    resources.DEPLOYMENTS: _workload(paused=KEPT),
    resources.DAEMON_SETS: _workload(),
    resources.JOBS: {
        **_workload(
            **_kept("parallelism", "completions", "completionMode", "backoffLimit", "suspend")
        ),
        "status": {
            **_kept("succeeded", "failed", "startTime", "completionTime", "completedIndexes"),
            "conditions": _CONDITIONS,
        },
    },
    resources.POD_DISRUPTION_BUDGETS: {
        "metadata": _metadata(OBJECT),
        "spec": {**_kept("minAvailable", "maxUnavailable"), "selector": _LABEL_SELECTOR},
        "status": _kept(
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
            "observedGeneration",
        ),
    },
    resources.PRIORITY_CLASSES: {
        "metadata": _metadata(KEPT),
        **_kept("value", "globalDefault", "preemptionPolicy"),
    },
    resources.RESOURCE_QUOTAS: {
        "metadata": _metadata(OBJECT),
        "spec": {
            **_kept("hard", "scopes"),
            "scopeSelector": {"matchExpressions": [_kept("scopeName", "operator", "values")]},
        },
        "status": _kept("hard", "used"),
    },
}
"""In the order in which a clone has them."""
