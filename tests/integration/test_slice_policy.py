"""A driver's admission policy for ResourceSlices, as dra-example-driver ships one: only those of the driver's own node.

The node comes from the token: it is bound to the pod of the driver, which runs on that node.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml

from allot.testing.builders import DRIVER
from allot.testing.manifests import a_dra_manifest
from allot.testing.servers import LocalServer

NAMESPACE = "dra-driver"
ACCOUNT = "driver"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"

POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "resourceslices-of-own-node"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["resourceslices"],
                }
            ]
        },
        "matchConditions": [
            {"name": "is-driver", "expression": f'request.userInfo.username == "{USER}"'}
        ],
        "variables": [
            {
                "name": "userNodeName",
                "expression": "request.userInfo.extra"
                "[?'authentication.kubernetes.io/node-name'][0].orValue('')",
            },
            {
                "name": "objectNodeName",
                "expression": "(request.operation == 'DELETE' ? oldObject : object)"
                ".spec.?nodeName.orValue('')",
            },
        ],
        "validations": [
            {
                "expression": "variables.userNodeName != ''",
                "message": "the token is not bound to a pod on a node",
            },
            {
                "expression": "variables.userNodeName == variables.objectNodeName",
                "messageExpression": "'a driver on node ' + variables.userNodeName + "
                "' may not write ' + (variables.objectNodeName == '' ? 'slices without a node' "
                ": 'slices of node ' + variables.objectNodeName)",
            },
        ],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "resourceslices-of-own-node"},
    "spec": {"policyName": "resourceslices-of-own-node", "validationActions": ["Deny"]},
}
ROLE = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "driver"},
    "rules": [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["*"]}],
}
ROLE_BINDING = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "driver"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "driver"},
    "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
}


def empty_slice(name: str, node: str, *, version: str = "v1") -> dict[str, Any]:
    place = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": node or "shared", "generation": 1, "resourceSliceCount": 1}
    made = a_dra_manifest("ResourceSlice", name, {"driver": DRIVER, "pool": pool, **place})
    return made | {"apiVersion": f"resource.k8s.io/{version}"}


def named(kind: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": name}}


def test_the_objects_in_the_documentation_are_accepted() -> None:
    asyncio.run(the_objects_in_the_documentation_are_accepted())


async def the_objects_in_the_documentation_are_accepted() -> None:
    text = (Path(__file__).parents[2] / "docs" / "admission.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    objects = [each for block in blocks for each in yaml.safe_load_all(block)]
    places = {
        "ValidatingAdmissionPolicy": f"{REGISTRATION}/validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": f"{REGISTRATION}/validatingadmissionpolicybindings",
        "Service": "/api/v1/namespaces/default/services",
        "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    }
    async with LocalServer() as server:
        for each in objects:
            await server.post(places[each["kind"]], each)
    assert len(objects) == 4


async def deploy_driver(server: LocalServer) -> None:
    """The objects that the driver's chart has, and a driver pod on each of two nodes."""
    await server.post("/api/v1/namespaces", named("Namespace", NAMESPACE))
    home = f"/api/v1/namespaces/{NAMESPACE}"
    await server.post(f"{home}/serviceaccounts", named("ServiceAccount", ACCOUNT))
    await server.post(f"/apis/{RBAC}/v1/clusterroles", ROLE)
    await server.post(f"/apis/{RBAC}/v1/clusterrolebindings", ROLE_BINDING)
    await server.post(f"{REGISTRATION}/validatingadmissionpolicies", POLICY)
    await server.post(f"{REGISTRATION}/validatingadmissionpolicybindings", BINDING)
    for node in ("node-a", "node-b"):
        await server.post("/api/v1/nodes", named("Node", node))
        spec = {
            "nodeName": node,
            "serviceAccountName": ACCOUNT,
            "containers": [{"name": "driver", "image": "driver"}],
        }
        await server.post(f"{home}/pods", named("Pod", f"driver-{node}") | {"spec": spec})


async def token_of_driver(server: LocalServer, node: str) -> dict[str, str]:
    """The credentials of the driver pod on a node; without a node, of nothing that runs on one."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    bound = {"kind": "Pod", "apiVersion": "v1", "name": f"driver-{node}"}
    issued = await server.post(path, {"spec": {"boundObjectRef": bound} if node else {}})
    return {"authorization": f"Bearer {issued['status']['token']}"}


def test_a_driver_writes_slices_of_its_own_node_only() -> None:
    asyncio.run(a_driver_writes_slices_of_its_own_node_only())


async def a_driver_writes_slices_of_its_own_node_only() -> None:
    async with LocalServer() as server:
        await deploy_driver(server)
        driver_a = await token_of_driver(server, "node-a")
        driver_b = await token_of_driver(server, "node-b")

        # Each publishes the devices of its node.
        await server.post(SLICES, empty_slice("slice-a", "node-a"), headers=driver_a)
        await server.post(SLICES, empty_slice("slice-b", "node-b"), headers=driver_b)

        # One that is compromised tries to publish devices elsewhere, and everywhere.
        for node, shown in (("node-b", "slices of node node-b"), ("", "slices without a node")):
            refused = await server.ask("POST", SLICES, empty_slice("evil", node), headers=driver_a)
            assert refused.code == 422
            assert refused.json["message"] == (
                'resourceslices.resource.k8s.io "evil" is forbidden: ValidatingAdmissionPolicy '
                "'resourceslices-of-own-node' with binding 'resourceslices-of-own-node' denied "
                f"request: a driver on node node-a may not write {shown}"
            )

        # An older version of the API is no way around it.
        path = SLICES.replace("/v1/", "/v1beta2/")
        older = empty_slice("evil", "node-b", version="v1beta2")
        assert (await server.ask("POST", path, older, headers=driver_a)).code == 422

        # Nor can it change or delete what others published.
        patch = {"metadata": {"labels": {"mine": "now"}}}
        merge = "application/merge-patch+json"
        changed = await server.ask(
            "PATCH", f"{SLICES}/slice-b", patch, headers=driver_a, content_type=merge
        )
        assert changed.code == 422
        assert (await server.ask("DELETE", f"{SLICES}/slice-b", headers=driver_a)).code == 422
        assert (await server.ask("DELETE", SLICES, headers=driver_a)).code == 422
        assert [each["metadata"]["name"] for each in (await server.get(SLICES))["items"]] == [
            "slice-b"
        ]

        # Its own is its own, and the administrator is no driver.
        await server.post(SLICES, empty_slice("slice-a", "node-a"), headers=driver_a)
        assert (await server.ask("DELETE", f"{SLICES}/slice-a", headers=driver_a)).code == 200
        assert (await server.ask("DELETE", f"{SLICES}/slice-b")).code == 200


def test_a_token_without_a_pod_has_no_node() -> None:
    asyncio.run(a_token_without_a_pod_has_no_node())


async def a_token_without_a_pod_has_no_node() -> None:
    async with LocalServer() as server:
        await deploy_driver(server)
        stolen = await token_of_driver(server, "")

        refused = await server.ask("POST", SLICES, empty_slice("slice-a", "node-a"), headers=stolen)

        assert refused.code == 422


def test_without_the_binding_a_driver_writes_anywhere() -> None:
    asyncio.run(without_the_binding_a_driver_writes_anywhere())


async def without_the_binding_a_driver_writes_anywhere() -> None:
    async with LocalServer() as server:
        await deploy_driver(server)
        driver = await token_of_driver(server, "node-a")
        path = f"{REGISTRATION}/validatingadmissionpolicybindings/resourceslices-of-own-node"
        assert (await server.ask("DELETE", path)).code == 200

        await server.post(SLICES, empty_slice("slice-b", "node-b"), headers=driver)
