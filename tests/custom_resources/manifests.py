"""Definitions and objects in the form that drivers and queueing systems bring along."""

from __future__ import annotations

from typing import Any, Final

STRING: Final = {"type": "string"}


def definition(
    group: str, kind: str, plural: str, version: str, schema: dict[str, Any], **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "listKind": f"{kind}List"},
            "scope": more.pop("scope", "Namespaced"),
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **more,
                }
            ],
        },
    }


COMPUTE_DOMAINS: Final = definition(
    "resource.nvidia.com",
    "ComputeDomain",
    "computedomains",
    "v1beta1",
    {
        "type": "object",
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["channel", "numNodes"],
                "properties": {
                    "channel": {
                        "type": "object",
                        "required": ["resourceClaimTemplate"],
                        "properties": {
                            "allocationMode": {
                                "type": "string",
                                "default": "Single",
                                "enum": ["All", "Single"],
                            },
                            "resourceClaimTemplate": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {"name": STRING},
                            },
                        },
                    },
                    "numNodes": {"type": "integer"},
                },
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "A computeDomain.spec is immutable"}
                ],
            },
            "status": {
                "type": "object",
                "required": ["status"],
                "properties": {
                    "nodes": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["cliqueID", "ipAddress", "name"],
                            "properties": {
                                "cliqueID": STRING,
                                "index": {"type": "integer"},
                                "ipAddress": STRING,
                                "name": STRING,
                            },
                        },
                    },
                    "status": {
                        "type": "string",
                        "default": "NotReady",
                        "enum": ["Ready", "NotReady"],
                    },
                },
            },
        },
    },
    subresources={"status": {}},
)

CLUSTER_QUEUES: Final = definition(
    "kueue.x-k8s.io",
    "ClusterQueue",
    "clusterqueues",
    "v1beta1",
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "cohort": {
                        "type": "string",
                        "maxLength": 253,
                        "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                    },
                    "flavorFungibility": {
                        "type": "object",
                        "default": {},
                        "properties": {
                            "whenCanBorrow": {
                                "type": "string",
                                "default": "Borrow",
                                "enum": ["Borrow", "TryNextFlavor"],
                            }
                        },
                    },
                    "preemption": {
                        "type": "object",
                        "default": {},
                        "properties": {
                            "reclaimWithinCohort": {
                                "type": "string",
                                "default": "Never",
                                "enum": ["Never", "LowerPriority", "Any"],
                            },
                            "borrowWithinCohort": {
                                "type": "object",
                                "properties": {"policy": {"type": "string", "default": "Never"}},
                            },
                        },
                        "x-kubernetes-validations": [
                            {
                                "rule": "!(self.reclaimWithinCohort == 'Never' && "
                                "has(self.borrowWithinCohort) && "
                                "self.borrowWithinCohort.policy != 'Never')",
                                "message": "reclaimWithinCohort=Never and "
                                "borrowWithinCohort.Policy!=Never",
                            }
                        ],
                    },
                    "resourceGroups": {
                        "type": "array",
                        "maxItems": 16,
                        "x-kubernetes-list-type": "atomic",
                        "items": {
                            "type": "object",
                            "required": ["coveredResources", "flavors"],
                            "properties": {
                                "coveredResources": {
                                    "type": "array",
                                    "minItems": 1,
                                    "maxItems": 16,
                                    "items": {"type": "string", "maxLength": 100},
                                },
                                "flavors": {
                                    "type": "array",
                                    "minItems": 1,
                                    "maxItems": 16,
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {
                                        "type": "object",
                                        "required": ["name", "resources"],
                                        "properties": {
                                            "name": {"type": "string", "maxLength": 253},
                                            "resources": {
                                                "type": "array",
                                                "minItems": 1,
                                                "maxItems": 16,
                                                "items": {
                                                    "type": "object",
                                                    "required": ["name", "nominalQuota"],
                                                    "properties": {
                                                        "name": {
                                                            "type": "string",
                                                            "maxLength": 100,
                                                        },
                                                        "nominalQuota": {
                                                            "x-kubernetes-int-or-string": True,
                                                            "anyOf": [
                                                                {"type": "integer"},
                                                                {"type": "string"},
                                                            ],
                                                            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)"
                                                            r"|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
                                                            r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|"
                                                            r"(\.[0-9]+))))?$",
                                                        },
                                                    },
                                                },
                                            },
                                        },
                                    },
                                },
                            },
                            "x-kubernetes-validations": [
                                {
                                    "rule": "self.flavors.all(x, size(x.resources) == "
                                    "size(self.coveredResources))",
                                    "message": "flavors must have the same number of resources as "
                                    "the coveredResources",
                                }
                            ],
                        },
                    },
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
    scope="Cluster",
    subresources={"status": {}},
    additionalPrinterColumns=[
        {"name": "Cohort", "type": "string", "jsonPath": ".spec.cohort"},
        {
            "name": "Pending Workloads",
            "type": "integer",
            "jsonPath": ".status.pendingWorkloads",
        },
    ],
)
