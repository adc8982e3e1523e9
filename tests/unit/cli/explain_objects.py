"""Clusters in files for tests of `allot explain`, and what is read of its answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from click.testing import CliRunner

from allot.cli.errors import EXIT_OK
from allot.cli.main import allot
from allot.testing.builders import DRIVER
from allot.testing.manifests import (
    a_claim_manifest,
    a_class_manifest,
    a_node_manifest,
    a_pod_manifest,
    a_request_manifest,
    a_slice_manifest,
)

Object = dict[str, Any]


def node_with(name: str, cpu: str = "8", **labels: str) -> Object:
    return a_node_manifest(name, labels=labels, status={"allocatable": {"cpu": cpu, "pods": "110"}})


def slice_of(node: str, *devices: Object) -> Object:
    return a_slice_manifest(*devices, name=node, node=node)


def a_gpu(name: str = "gpu-0", memory: str = "80Gi", numa: int = 0, **fields: Any) -> Object:
    return {
        "name": name,
        "attributes": {"numa": {"int": numa}},
        "capacity": {"memory": {"value": memory}},
    } | fields


def exactly(**fields: Any) -> Object:
    return a_request_manifest(**fields)


def my_claim(*requests: Object, name: str = "mine", **devices: Any) -> Object:
    return a_claim_manifest(*requests, name=name, namespace="", **devices)


def allocated(
    claim: Object, device: str = "gpu-0", node: str = "node-1", pod: str = "", **result: Any
) -> Object:
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": device} | result]
    pins = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": pins}]},
        "allocationTimestamp": (datetime.now(UTC) - timedelta(minutes=5)).isoformat(),
    }
    users = [{"resource": "pods", "name": pod, "uid": f"Pod/default/{pod}"}] if pod else []
    return claim | {"status": {"allocation": allocation, "reservedFor": users}}


def my_pod(name: str = "pod", *entries: Object, **spec: Any) -> Object:
    """A pod that uses `mine` unless it has entries of `spec.resourceClaims`."""
    claims = entries or ({"name": "gpu", "resourceClaimName": "mine"},)
    return a_pod_manifest(name, namespace="", claims=claims, **spec)


CLASS = a_class_manifest("gpu", f"device.driver == '{DRIVER}'")
NODE = node_with("node-1")


def explain(*arguments: str, objects: list[Object]) -> str:
    text = yaml.safe_dump_all(objects)
    command = ["explain", *arguments, "-f", "-"]
    result = CliRunner().invoke(allot, command, input=text, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == EXIT_OK
    return result.output


def of_pod(*objects: Object, name: str = "pod") -> Object:
    found: Object = json.loads(explain(f"pod/{name}", "-o", "json", objects=[CLASS, *objects]))
    return found


def of_claim(*objects: Object, name: str = "mine") -> Object:
    found: Object = json.loads(explain(f"claim/{name}", "-o", "json", objects=[CLASS, *objects]))
    return found


def problem(found: Object) -> str:
    """The verdict without the change that would help."""
    text: str = found["verdict"]
    return text.partition(" What would help: ")[0]


def reasons(found: Object, node: int = 0) -> list[tuple[str, list[str]]]:
    """Each reason of the node's requests, with the devices."""
    return [
        (refusal["reason"], [device.rpartition("/")[2] for device in refusal["devices"]])
        for request in found["nodes"][node]["requests"]
        for refusal in request["refusals"]
    ]


def changes(found: Object) -> list[str]:
    return [f"{each['node']}: {each['change']}" for each in found["proposals"]]
