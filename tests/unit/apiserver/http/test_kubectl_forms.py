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


def test_some_subresources_have_name_and_age_only() -> None:
    async def story(server: LocalServer) -> None:
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
        claims = f"{DRA}/v1/namespaces/default/resourceclaims"
        await server.post(claims, claim)
        pods = "/api/v1/namespaces/default/pods"
        containers = [{"name": "c", "image": "i"}]
        await server.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": containers}})

        async def columns(path: str) -> list[str]:
            table = (await server.ask("GET", path, headers=TABLE)).json
            return [column["name"] for column in table["columnDefinitions"]]

        for path in (f"{claims}/c/status", f"{pods}/p/ephemeralcontainers"):
            assert await columns(path) == ["Name", "Age"]
        assert await columns(f"{claims}/c") == ["Name", "State", "Age"]
        assert "Status" in await columns(f"{pods}/p/status")

    run(story)


@pytest.mark.parametrize(
    ("api_version", "kind", "problem"),
    [
        ("v1", "Secret", "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            "apps/v1",
            "Deployment",
            "converting (v1.Deployment) to (core.ConfigMap): unknown conversion",
        ),
        ("v1", "Foo", 'no kind "Foo" is registered for version "v1" in scheme'),
        ("v9", "ConfigMap", 'no kind "ConfigMap" is registered for version "v9" in scheme'),
    ],
)
def test_bodies_of_another_kind(api_version: str, kind: str, problem: str) -> None:
    async def story(server: LocalServer) -> None:
        body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "m"}}
        refused = await server.ask("POST", MAPS, body)

        assert refused.code == 400
        version = api_version.rpartition("/")[2]
        begin = f'{kind} in version "{version}" cannot be handled as a ConfigMap: {problem}'
        assert refused.json["message"].startswith(begin)

    run(story)


def test_bodies_of_another_version_of_the_kind() -> None:
    async def story(server: LocalServer) -> None:
        body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {}}
        path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
        refused = await server.ask("POST", path, body)
        unreadable = await server.ask("POST", path, body | {"apiVersion": "a/b/c"})

        assert refused.json["message"] == (
            "the API version in the data (autoscaling/v2) does not match the expected API version"
            " (autoscaling/v1)"
        )
        assert "unexpected GroupVersion string: a/b/c" in unreadable.json["message"]

    run(story)


def test_lists_that_cannot_be_answered() -> None:
    async def story(server: LocalServer) -> None:
        async def message(query: str) -> str:
            answer = await server.ask("GET", f"{MAPS}?{query}")
            assert answer.code == 400
            return str(answer.json["message"])

        assert await message("resourceVersion=bad") == (
            'invalid resource version: resourceVersion: Invalid value: "bad": '
            'strconv.ParseUint: parsing "bad": invalid syntax'
        )
        assert await message("continue=bad") == (
            "invalid continue token: continue key is not valid: "
            "invalid character 'm' looking for beginning of value"
        )
        assert (await server.ask("GET", f"{MAPS}?labelSelector=app%20in%20()")).code == 200

    run(story)


def test_the_default_ingress_class() -> None:
    async def story(server: LocalServer) -> None:
        path, group = "/apis/networking.k8s.io/v1", "networking.k8s.io/v1"
        default = {"ingressclass.kubernetes.io/is-default-class": "true"}
        for name, notes in (("a", {}), ("b", default)):
            metadata = {"name": name, "annotations": notes}
            body = {"apiVersion": group, "metadata": metadata, "spec": {"controller": "x.y/z"}}
            await server.post(f"{path}/ingressclasses", body)
        backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
        ingresses = f"{path}/namespaces/default/ingresses"

        async def created_class(name: str, given: str | None, **annotations: str) -> str | None:
            spec = backend | ({} if given is None else {"ingressClassName": given})
            metadata = {"name": name, "annotations": annotations}
            created = await server.post(ingresses, {"metadata": metadata, "spec": spec})
            found: str | None = created["spec"].get("ingressClassName")
            return found

        assert await created_class("one", None) == "b"
        assert await created_class("two", "a") == "a"
        annotated = {"kubernetes.io/ingress.class": "nginx"}
        assert await created_class("three", None, **annotated) is None
        table = (await server.ask("GET", f"{path}/ingressclasses", headers=TABLE)).json
        assert [row["cells"][0] for row in table["rows"]] == ["a", "b (default)"]

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
