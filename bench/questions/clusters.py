"""Clusters of any size for the measurements: nodes with equal devices, and pods that want one or two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allot.api.claims import ResourceClaimTemplate
from allot.api.core import Node, Pod
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.observed_cluster import ObservedCluster
from allot.testing.builders import a_class, a_device, a_slice

CLASS = "gpu.example.com"
MODELS = ("A100", "H100", "H200")


def a_cluster(nodes: int, devices: int = 8) -> ObservedCluster:
    """Nodes in four zones, with devices of three models."""
    objects = Snapshot()
    for number in range(nodes):
        name = f"node-{number:05}"
        objects.put(resources.NODES, _node(name, number))
        model = MODELS[number % 3]
        published = [
            a_device(f"gpu-{index}", {"model": model, "index": index}, {"memory": "80Gi"})
            for index in range(devices)
        ]
        objects.put(resources.RESOURCE_SLICES, a_slice(*published, name=name, node=name))
    objects.put(resources.DEVICE_CLASSES, a_class(CLASS, f'device.driver == "{CLASS}"'))
    for name, count in (("one", 1), ("two", 2)):
        objects.put(resources.RESOURCE_CLAIM_TEMPLATES, _template(name, count))
    return ObservedCluster(objects)


def some_pods(number: int, template: str = "", **metadata: Any) -> Iterator[Pod]:
    """Pods with one or two devices; with `template`, all with that one."""
    for index in range(number):
        yield a_pod(f"pod-{index:06}", template or ("one", "two")[index % 3 == 2], **metadata)


def a_pod(name: str, template: str, **metadata: Any) -> Pod:
    return Pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"} | metadata,
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/trainer:1",
                        "resources": {
                            "requests": {"cpu": "1", "memory": "1Gi"},
                            "claims": [{"name": "gpu"}],
                        },
                    }
                ],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            },
        }
    )


def _node(name: str, number: int) -> Node:
    amounts = {"cpu": "96", "memory": "1024Gi", "pods": "250"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 4}"}
    return Node(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
    )


def _template(name: str, count: int) -> ResourceClaimTemplate:
    from allot.api.claims import (
        DeviceClaim,
        DeviceRequest,
        ExactDeviceRequest,
        ResourceClaimSpec,
        ResourceClaimTemplateSpec,
    )
    from allot.api.meta import ObjectMeta

    exactly = ExactDeviceRequest(device_class_name=CLASS, allocation_mode="ExactCount", count=count)
    spec = ResourceClaimSpec(DeviceClaim((DeviceRequest("gpu", exactly),)))
    return ResourceClaimTemplate(
        ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        ResourceClaimTemplateSpec(spec=spec),
    )
