"""Endpoints that are no resources: health, metrics, discovery, OpenAPI; and requests that match no route."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from allot.apiserver.http.openapi import version_2
from allot.apiserver.registry.served import ServedResources
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer, ServerResponse
from allot.testing.virtual_time import run_in_virtual_time

MAPS = "/api/v1/namespaces/default/configmaps"


def answer(
    path: str, headers: Mapping[str, str] | None = None, method: str = "GET", **query: str
) -> ServerResponse:
    async def run() -> ServerResponse:
        async with LocalServer() as server:
            return await server.ask(method, path, headers=headers, query=query)

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_are_open_to_anonymous_users(path: str) -> None:
    assert answer(path, {"authorization": ""}).code == 200


def test_health_in_detail() -> None:
    verbose = answer("/readyz", verbose="true")
    assert verbose.content.decode().splitlines() == [
        "[+]ping ok",
        "[+]storage ok",
        "[+]shutdown ok",
        "readyz check passed",
    ]
    assert answer("/readyz/storage").content == b"ok"
    assert answer("/readyz/nothing").code == 404


class StoreInTrouble(MemoryStore):
    """One whose last write failed."""

    trouble = "the disk is full"


class SilentStore(MemoryStore):
    """One that does not answer."""

    silent = False

    async def revision(self) -> int:
        if self.silent:
            await asyncio.sleep(3600)
        return await super().revision()


def test_a_store_that_cannot_be_written_is_not_ready() -> None:
    async def run() -> None:
        async with LocalServer(StoreInTrouble()) as server:
            answer = await server.ask("GET", "/readyz")
            assert answer.code == 500
            assert b"[-]storage failed: the disk is full" in answer.content
            assert (await server.ask("GET", "/livez")).code == 200

    asyncio.run(run())


def test_a_store_that_does_not_answer_is_not_ready() -> None:
    async def run() -> None:
        store = SilentStore()
        async with LocalServer(store) as server:
            store.silent = True
            answer = await server.ask("GET", "/readyz/storage")
            assert (answer.code, b"no answer within 2 s" in answer.content) == (500, True)
            store.silent = False

    run_in_virtual_time(run())


def test_a_server_that_is_going_is_not_ready() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            server.server.begin_shutdown()
            assert (await server.ask("GET", "/readyz")).code == 500
            assert (await server.ask("GET", "/livez")).code == 200

    asyncio.run(run())


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path", ["/nothing", "/openapi/v9", "/apis/none.example.com", "/apis/none.example.com/v1"]
)
def test_unknown_pages(method: str, path: str) -> None:
    missing = answer(path, method=method)
    assert (missing.code, missing.content) == (404, b"404 page not found\n")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothing", f"{MAPS}/a/nothing", "/apis/resource.k8s.io/v1/nothing/x", "/api/v2", "/apis/apps/v9",
        "/apis/networking.k8s.io/v1beta1/ipaddresses/x", "/version/x",
    ],
)  # fmt: skip
def test_what_built_in_apis_do_not_have_is_answered_with_a_status(method: str, path: str) -> None:
    missing = answer(path, method=method)
    assert (missing.code, missing.json["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("DELETE", "/version", 405),
    ],
)
def test_methods_that_mean_nothing(method: str, path: str, code: int) -> None:
    refused = answer(path, method=method)
    assert (refused.code, refused.json["kind"]) == (code, "Status")


def test_aggregated_discovery_agrees_with_the_classic_one() -> None:
    async def run() -> None:
        accept = {
            "accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        }
        async with LocalServer() as server:
            for path in ("/api", "/apis"):
                all_at_once = await server.ask("GET", path, headers=accept)
                etag = all_at_once.header("etag")[0]
                again = await server.ask("GET", path, headers={**accept, "if-none-match": etag})
                assert (again.code, again.content) == (304, b"")
                for group in all_at_once.json["items"]:
                    name = group["metadata"].get("name", "")
                    for version in group["versions"]:
                        base = f"/apis/{name}" if name else "/api"
                        classic = await server.get(f"{base}/{version['version']}")
                        listed = {r["name"] for r in classic["resources"]}
                        assert listed == _flattened(version["resources"])

    asyncio.run(run())


def _flattened(resources: list[dict[str, Any]]) -> set[str]:
    return {
        "/".join([resource["resource"], *part])
        for resource in resources
        for part in [[], *([p["subresource"]] for p in resource.get("subresources", []))]
    }


def test_metrics_count_requests() -> None:
    async def run() -> str:
        async with LocalServer() as server:
            await server.get(MAPS)
            return (await server.ask("GET", "/metrics")).content.decode()

    text = asyncio.run(run())
    assert (
        'apiserver_request_total{code="200",group="",resource="configmaps",scope="namespace",'
        'subresource="",verb="list",version="v1"} 1.0' in text
    )
    assert "apiserver_request_duration_seconds_bucket" in text


def test_pages_that_are_no_json_are_not_made_pretty() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            for path in ("/metrics", "/healthz"):
                answer = await server.ask("GET", path, query={"pretty": "true"})
                assert (answer.code, answer.header("content-type")[0][:10]) == (200, "text/plain")

    asyncio.run(run())


def test_openapi_v2_has_all_versions_in_one_document() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            found = await server.get("/openapi/v2")
            claim = found["definitions"]["io.k8s.api.resource.v1.ResourceClaim"]
            kinds = [{"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}]
            assert claim["x-kubernetes-group-version-kind"] == kinds
            spec = claim["properties"]["spec"]["$ref"]
            assert spec == "#/definitions/io.k8s.api.resource.v1.ResourceClaimSpec"
            assert "io.k8s.api.core.v1.Pod" in found["definitions"]
            assert b"#/components/" not in msgspec.json.encode(found)
            path = found["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
            assert {"name": "dryRun", "in": "query"}.items() <= path["patch"]["parameters"][
                1
            ].items()

    asyncio.run(run())


def test_openapi_v2_in_protobuf_has_names_and_references() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            answer = await server.ask("GET", "/openapi/v2", headers={"accept": accept})
            assert answer.code == 200
            assert answer.content.startswith(b"\x0a\x032.0")
            assert b"io.k8s.api.resource.v1.DeviceClass" in answer.content
            (etag,) = answer.header("etag")
            again = {"accept": accept, "if-none-match": etag}
            assert (await server.ask("GET", "/openapi/v2", headers=again)).code == 304

    asyncio.run(run())


def test_openapi_is_kept_by_clients() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            index = await server.get("/openapi/v3")
            url = index["paths"]["apis/resource.k8s.io/v1"]["serverRelativeURL"]
            path, _, hash_ = url.partition("?hash=")
            document = await server.ask("GET", path, query={"hash": hash_})
            assert document.json["openapi"] == "3.0.0"
            etag = document.header("etag")[0]
            assert etag == f'"{hash_}"'
            again = await server.ask("GET", path, headers={"if-none-match": etag})
            assert again.code == 304

    asyncio.run(run())


def test_a_document_that_several_clients_ask_for_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0
    original = version_2.build

    def counting(served: ServedResources) -> version_2.OpenApiDocument:
        nonlocal made
        made += 1
        return original(served)

    monkeypatch.setattr(version_2, "build", counting)

    async def run() -> set[bytes]:
        async with LocalServer() as server:
            answers = await asyncio.gather(*(server.ask("GET", "/openapi/v2") for _ in range(5)))
            return {each.content for each in answers if each.code == 200}

    assert len(asyncio.run(run())) == 1
    assert made == 1
