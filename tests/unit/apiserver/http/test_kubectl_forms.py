"""Forms of answers that kubectl shows as they are: line ends, order of fields, tables, warnings, discovery."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot import features
from allot.rules import RuleSet
from allot.testing.servers import LocalServer

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MAPS = "/api/v1/namespaces/default/configmaps"
DRA = "/apis/resource.k8s.io"


def run(story: Callable[[LocalServer], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        async with LocalServer(**options) as server:
            await story(server)

    asyncio.run(whole())


def test_documents_end_with_a_line_and_metadata_is_in_order() -> None:
    async def story(server: LocalServer) -> None:
        await server.post(MAPS, {"metadata": {"name": "m", "labels": {"a": "b"}}})
        for path in (f"{MAPS}/m", MAPS, "/api", "/apis/apps", "/api/v1", f"{MAPS}/missing"):
            content = (await server.ask("GET", path)).content
            assert content.endswith(b"}\n"), path
            assert not content.endswith(b"\n\n"), path
        found = (await server.ask("GET", f"{MAPS}/m")).json
        assert list(found["metadata"]) == [
            "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels", "managedFields",
        ]  # fmt: skip
        assert (await server.ask("GET", "/version")).content.startswith(b'{\n  "major"')

    run(story)


def test_an_owner_before_the_uid_of_the_object_is_not_mistaken_for_it() -> None:
    async def story(server: LocalServer) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
        created = await server.post(
            MAPS, {"metadata": {"ownerReferences": [owner], "generateName": "m-"}}
        )
        assert created["metadata"]["ownerReferences"] == [owner]
        assert created["metadata"]["resourceVersion"]

    run(story)


def test_the_table_of_a_scale() -> None:
    async def story(server: LocalServer) -> None:
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await server.post(path, {"metadata": {"name": "d"}, "spec": spec})
        table = (await server.ask("GET", f"{path}/d/scale", headers=TABLE)).json

        assert table["kind"] == "Table"
        assert [column["name"] for column in table["columnDefinitions"]] == [
            "Name",
            "Desired",
            "Available",
            "Age",
        ]
        assert table["rows"][0]["cells"][:3] == ["d", 3, 0]

    run(story)


def test_flow_schemas_are_listed_in_the_order_they_match() -> None:
    async def story(server: LocalServer) -> None:
        path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
        rows = (await server.ask("GET", path, headers=TABLE)).json["rows"]
        order = [(row["cells"][2], row["cells"][0]) for row in rows]

        assert len(order) > 5
        assert order == sorted(order)

    run(story)


@pytest.mark.parametrize(
    ("path", "warning"),
    [
        (
            f"{DRA}/v1beta1/resourceslices",
            "resource.k8s.io/v1beta1 ResourceSlice is deprecated in v1.35+, unavailable in v1.38+",
        ),
        (
            f"{DRA}/v1beta2/namespaces/default/resourceclaims/missing",
            "resource.k8s.io/v1beta2 ResourceClaim is deprecated in v1.36+, unavailable in v1.39+",
        ),
        (
            "/api/v1/endpoints",
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (f"{DRA}/v1beta2/devicetaintrules", None),
        (f"{DRA}/v1/resourceslices", None),
    ],
)
def test_deprecated_versions_warn(path: str, warning: str | None) -> None:
    async def story(server: LocalServer) -> None:
        found = (await server.ask("GET", path)).header("warning")
        assert found == ([f'299 - "{warning}"'] if warning else [])

    run(story)


@pytest.mark.parametrize(
    ("rules", "versions", "names"),
    [
        (RuleSet.SEEDS, ["v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha1"], ["rpsr"]),
        (RuleSet.V1_38, ["v1", "v1beta2", "v1beta1", "v1alpha3"], None),
    ],
)
def test_the_version_of_the_kep_is_served_by_its_rule(
    rules: RuleSet, versions: list[str], names: list[str] | None
) -> None:
    async def story(server: LocalServer) -> None:
        group = await server.get(DRA)
        assert [each["version"] for each in group["versions"]] == versions
        listed = (await server.get(f"{DRA}/v1alpha3"))["resources"]
        (found,) = [each for each in listed if each["name"] == "resourcepoolstatusrequests"]
        assert found.get("shortNames") == names
        answer = await server.ask("GET", f"{DRA}/v1alpha1/resourcepoolstatusrequests")
        assert answer.code == (200 if "v1alpha1" in versions else 404)

    gates = features.with_overrides({features.RESOURCE_POOL_STATUS: True}, rules)
    run(story, gates=gates)


@pytest.mark.parametrize(
    ("plural", "message"),
    [
        ("/api/v1/pods", "field label not supported: bad"),
        ("/apis/batch/v1/jobs", 'field label "bad" not supported for Job'),
        (
            f"{DRA}/v1/resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: bad",
        ),
        (
            "/apis/apps/v1/replicasets",
            '"bad" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_unknown_fields_of_selectors(plural: str, message: str) -> None:
    async def story(server: LocalServer) -> None:
        answer = await server.ask("GET", plural, query={"fieldSelector": "bad=1"})
        assert answer.code == 400
        assert message in answer.json["message"]

    run(story)
