"""A body that cannot be read: the answer names the field, the value and the rule, whatever the kind and format."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

from allot.testing.manifests import (
    a_claim_manifest,
    a_pod_manifest,
    a_request_manifest,
    a_slice_manifest,
)
from allot.testing.servers import LocalServer, ServerResponse

DRA = "/apis/resource.k8s.io/v1"
SLICES = f"{DRA}/resourceslices"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
CORE = "/api/v1/namespaces/default"
QUANTITY = "quantities must match the regular expression"


def slice_with(**device: Any) -> dict[str, Any]:
    return a_slice_manifest({"name": "first"}, {"name": "d"} | device, name="s")


def claim_with(**exactly: Any) -> dict[str, Any]:
    return a_claim_manifest(a_request_manifest("r", **exactly), name="c")


def pod_with(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"} | (container or {})]
    return a_pod_manifest("p", containers=containers, **spec)


def with_spec(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": spec}


TAINT = {"key": "k", "effect": "NoSchedule", "timeAdded": "yesterday"}
RANGE = {"value": "1", "requestPolicy": {"validRange": {"min": "1x"}}}
CASES = [
    pytest.param(
        SLICES,
        slice_with(capacity={"memory": {"value": "10GiB"}}),
        QUANTITY,
        'spec.devices[1].capacity[memory].value: "10GiB"',
        id="slice-quantity",
    ),
    pytest.param(
        SLICES,
        slice_with(capacity={"memory": {"value": ["1"]}}),
        QUANTITY,
        'spec.devices[1].capacity[memory].value: ["1"]',
        id="slice-quantity-list",
    ),
    pytest.param(
        SLICES,
        slice_with(capacity={"memory": RANGE}),
        QUANTITY,
        'spec.devices[1].capacity[memory].requestPolicy.validRange.min: "1x"',
        id="slice-policy",
    ),
    pytest.param(
        SLICES,
        slice_with(attributes={"a": {"int": "five"}}),
        "cannot unmarshal string into",
        'spec.devices[1].attributes[a].int: "five"',
        id="slice-int",
    ),
    pytest.param(
        SLICES,
        slice_with(attributes={"a": {"int": 2**64}}),
        "cannot unmarshal number 18446744073709551616 into",
        "spec.devices[1].attributes[a].int: 18446744073709551616",
        id="slice-int-too-large",
    ),
    pytest.param(
        SLICES,
        slice_with(taints=[TAINT]),
        'parsing time "yesterday"',
        'spec.devices[1].taints[0].timeAdded: "yesterday"',
        id="slice-time",
    ),
    pytest.param(
        SLICES,
        slice_with(attributes=[]),
        "cannot unmarshal array into",
        "spec.devices[1].attributes: []",
        id="slice-list-for-map",
    ),
    pytest.param(
        CLAIMS,
        claim_with(capacity={"requests": {"memory": "1 Gi"}}),
        QUANTITY,
        'spec.devices.requests[0].exactly.capacity.requests[memory]: "1 Gi"',
        id="claim-quantity",
    ),
    pytest.param(
        CLAIMS,
        claim_with(count=1.5),
        "cannot unmarshal number 1.5 into",
        "spec.devices.requests[0].exactly.count: 1.5",
        id="claim-fraction",
    ),
    pytest.param(
        CLAIMS,
        claim_with(adminAccess="yes"),
        "cannot unmarshal string into",
        'spec.devices.requests[0].exactly.adminAccess: "yes"',
        id="claim-bool",
    ),
    pytest.param(
        "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests",
        with_spec(driver="d.e", limit="ten"),
        "cannot unmarshal string into",
        'spec.limit: "ten"',
        id="pool-status-limit",
    ),
    pytest.param(
        f"{CORE}/pods",
        pod_with({"resources": {"limits": {"cpu": "1 core"}}}),
        QUANTITY,
        'spec.containers[0].resources.limits[cpu]: "1 core"',
        id="pod-quantity",
    ),
    pytest.param(
        f"{CORE}/pods",
        pod_with(terminationGracePeriodSeconds="soon"),
        "cannot unmarshal string into",
        'spec.terminationGracePeriodSeconds: "soon"',
        id="pod-int",
    ),
    pytest.param(
        f"{CORE}/pods",
        pod_with({"image": 7}),
        "cannot unmarshal number into",
        "spec.containers[0].image: 7",
        id="pod-text",
    ),
    pytest.param(
        f"{CORE}/resourcequotas",
        with_spec(hard={"cpu": "ten"}),
        QUANTITY,
        'spec.hard[cpu]: "ten"',
        id="quota",
    ),
    pytest.param(
        f"{CORE}/limitranges",
        with_spec(limits=[{"type": "Container", "max": {"cpu": "x"}}]),
        QUANTITY,
        'spec.limits[0].max[cpu]: "x"',
        id="limit-range",
    ),
    pytest.param(
        f"{CORE}/persistentvolumeclaims",
        with_spec(resources={"requests": {"storage": "10 GB"}}),
        QUANTITY,
        'spec.resources.requests[storage]: "10 GB"',
        id="volume-claim",
    ),
    pytest.param(
        "/api/v1/nodes",
        {"metadata": {"name": "node"}, "status": {"capacity": {"cpu": "1cpu"}}},
        QUANTITY,
        'status.capacity[cpu]: "1cpu"',
        id="node",
    ),
    pytest.param(
        f"{CORE}/services",
        with_spec(ports=[{"port": 80, "targetPort": {}}]),
        "cannot unmarshal object into",
        "spec.ports[0].targetPort: {}",
        id="service-port",
    ),
    pytest.param(
        f"{CORE}/configmaps",
        {"metadata": {"name": "x", "labels": {"a": 1}}},
        "cannot unmarshal number into",
        "metadata.labels[a]: 1",
        id="labels",
    ),
    pytest.param(
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        with_spec(renewTime="now"),
        'parsing time "now"',
        'spec.renewTime: "now"',
        id="micro-time",
    ),
]


def post(path: str, body: Any, content_type: str) -> ServerResponse:
    async def story() -> ServerResponse:
        async with LocalServer() as server:
            return await server.ask("POST", path, body, content_type=content_type)

    return asyncio.run(story())


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
@pytest.mark.parametrize(("path", "body", "rule", "place"), CASES)
def test_field_value_and_rule(
    path: str, body: dict[str, Any], rule: str, place: str, content_type: str
) -> None:
    sent = body if content_type == "application/json" else yaml.safe_dump(body).encode()

    answer = post(path, sent, content_type)

    assert answer.code == 400
    message: str = answer.json["message"]
    assert rule in message
    assert message.endswith(f" ({place})")


def test_a_long_value_is_cut() -> None:
    body = slice_with(capacity={"memory": {"value": "9" * 10 + "x" * 5000}})

    message: str = post(SLICES, body, "application/json").json["message"]

    assert message.endswith("xxx...)")
    assert len(message) < 500


def test_nothing_of_a_secret_is_shown() -> None:
    body = {"metadata": {"name": "s"}, "data": {"password": "hunter2 "}}

    message: str = post(f"{CORE}/secrets", body, "application/json").json["message"]

    assert message.endswith(" (data[password]: (not shown))")
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (
            "application/merge-patch+json",
            {"spec": {"devices": [{"name": "d", "capacity": {"memory": {"value": "1x"}}}]}},
        ),
        (
            "application/json-patch+json",
            [
                {
                    "op": "add",
                    "path": "/spec/devices/0/capacity",
                    "value": {"memory": {"value": "1x"}},
                }
            ],
        ),
    ],
)
def test_what_a_patch_makes_of_an_object(content_type: str, patch: Any) -> None:
    async def story() -> ServerResponse:
        async with LocalServer() as server:
            await server.post(SLICES, slice_with())
            return await server.ask("PATCH", f"{SLICES}/s", patch, content_type=content_type)

    answer = asyncio.run(story())

    assert answer.code == 422
    assert answer.json["message"].endswith('(spec.devices[0].capacity[memory].value: "1x")')


def test_a_strategic_merge_patch_of_a_pod() -> None:
    async def story() -> ServerResponse:
        async with LocalServer() as server:
            await server.post(f"{CORE}/pods", pod_with())
            patch = pod_with({"resources": {"requests": {"memory": "1x"}}})
            kind = "application/strategic-merge-patch+json"
            return await server.ask("PATCH", f"{CORE}/pods/p", patch, content_type=kind)

    answer = asyncio.run(story())

    assert answer.code == 422
    message = answer.json["message"]
    assert message.endswith('(spec.containers[0].resources.requests[memory]: "1x")')


def test_a_part_of_an_object() -> None:
    async def story() -> ServerResponse:
        async with LocalServer() as server:
            await server.post(f"{CORE}/pods", pod_with())
            body = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": "soon"}}
            return await server.ask("POST", f"{CORE}/pods/p/eviction", body)

    answer = asyncio.run(story())

    assert answer.code == 400
    assert answer.json["message"].endswith('(deleteOptions.gracePeriodSeconds: "soon")')
