"""The asyncio half of the official Python client, and both dynamic clients."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import config, dynamic
from kubernetes.aio import client as aio_client
from kubernetes.aio import config as aio_config
from kubernetes.aio import watch as aio_watch
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient as AioDynamicClient
from kubernetes.dynamic.exceptions import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    ResourceNotFoundError,
    UnprocessibleEntityError,
)

from tests.clients.api_server import RunningServer
from tests.clients.test_python_client import CLAIM_SPEC

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def run_with(server: RunningServer, use: Callable[[Any], Awaitable[None]]) -> None:
    """Call `use` with a connected asyncio client."""

    async def main() -> None:
        settings = aio_client.Configuration()
        await aio_config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
        async with aio_client.ApiClient(settings) as api:
            await use(api)

    asyncio.run(main())


def test_async_round_trip(server: RunningServer, namespace: str) -> None:
    async def use(api: Any) -> None:
        core: Any = aio_client.CoreV1Api(api)
        body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
        created = await core.create_namespaced_config_map(namespace, body)
        merged = await core.patch_namespaced_config_map("a", namespace, {"data": {"l": "w"}})
        operations = [{"op": "remove", "path": "/data/k"}]
        patched = await core.patch_namespaced_config_map("a", namespace, operations)
        listed = await core.list_namespaced_config_map(namespace, limit=1)
        with pytest.raises(ApiException) as twice:
            await core.create_namespaced_config_map(namespace, body)
        await core.delete_namespaced_config_map("a", namespace)
        version = await aio_client.VersionApi(api).get_code()

        assert created.metadata.uid
        assert merged.data == {"k": "v", "l": "w"}
        assert patched.data == {"l": "w"}
        assert [item.metadata.name for item in listed.items] == ["a"]
        assert json.loads(twice.value.body or "{}")["reason"] == "AlreadyExists"
        assert version.minor == "38"

    run_with(server, use)


def test_async_claims(server: RunningServer, namespace: str) -> None:
    async def use(api: Any) -> None:
        resources: Any = aio_client.ResourceV1Api(api)
        claim = {"metadata": {"generateName": "c-"}, "spec": CLAIM_SPEC}
        names = await asyncio.gather(
            *(resources.create_namespaced_resource_claim(namespace, claim) for _ in range(20))
        )
        listed = await resources.list_namespaced_resource_claim(namespace)
        await resources.delete_collection_namespaced_resource_claim(namespace)
        rest = await resources.list_namespaced_resource_claim(namespace)

        assert len({item.metadata.name for item in names}) == 20
        assert {item.metadata.name for item in listed.items} == {i.metadata.name for i in names}
        assert rest.items == []

    run_with(server, use)


def test_async_watch_resumes(server: RunningServer, namespace: str) -> None:
    async def use(api: Any) -> None:
        core: Any = aio_client.CoreV1Api(api)
        first = await core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
        await core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
        await core.delete_namespaced_config_map("a", namespace)
        seen = []
        async with aio_watch.Watch() as watch:
            async for event in watch.stream(
                core.list_namespaced_config_map,
                namespace,
                resource_version=first.metadata.resource_version,
                timeout_seconds=5,
            ):
                seen.append(event["type"])
                if event["type"] == "DELETED":
                    break

        assert seen == ["MODIFIED", "DELETED"]

    run_with(server, use)


# --- dynamic clients ---


@pytest.fixture
def found(server: RunningServer, tmp_path: Path) -> Iterator[Any]:
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        yield dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))


def test_dynamic_client_discovers_every_group(found: Any) -> None:
    kinds = {
        (resource.group_version, resource.kind)
        for resource in found.resources.search()
        if not resource.kind.endswith("List")
    }
    versions = {"v1", "v1beta2", "v1beta1"}

    assert ("v1", "Pod") in kinds
    assert {f"resource.k8s.io/{version}" for version in versions} == {
        group for group, kind in kinds if kind == "ResourceClaim"
    }
    assert ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest") in kinds
    with pytest.raises(ResourceNotFoundError):
        found.resources.get(api_version="v1", kind="NoSuchKind")


def test_dynamic_client_round_trip(found: Any, namespace: str) -> None:
    claims = found.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": CLAIM_SPEC,
    }
    created = claims.create(body=claim, namespace=namespace)
    labels = {"metadata": {"labels": {"a": "b"}}}
    patched = claims.patch(
        name="c", namespace=namespace, body=labels, content_type="application/merge-patch+json"
    )
    listed = claims.get(namespace=namespace, label_selector="a=b")
    stale = created.to_dict() | {"status": {}}
    with pytest.raises(ConflictError):
        claims.replace(body=stale, namespace=namespace)
    with pytest.raises(UnprocessibleEntityError):
        claims.create(body=claim | {"metadata": {"name": "A B"}}, namespace=namespace)
    with pytest.raises(BadRequestError, match="is registered for version"):
        claims.create(body=claim | {"apiVersion": "v1"}, namespace=namespace)
    status = {
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "gpu", "driver": "a.b", "pool": namespace, "device": "d"}
                    ]
                }
            }
        }
    }
    allocated = claims.status.patch(
        name="c", namespace=namespace, body=status, content_type="application/merge-patch+json"
    )
    claims.delete(name="c", namespace=namespace)
    with pytest.raises(NotFoundError):
        claims.get(name="c", namespace=namespace)

    assert patched.metadata.labels.a == "b"
    assert [item.metadata.name for item in listed.items] == ["c"]
    assert allocated.status.allocation.devices.results[0].device == "d"


def test_dynamic_watch(found: Any, namespace: str) -> None:
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    first = maps.create(body={"metadata": {"name": "a"}}, namespace=namespace)
    maps.delete(name="a", namespace=namespace)

    events = maps.watch(
        namespace=namespace, resource_version=first.metadata.resourceVersion, timeout=2
    )

    assert next(iter(events))["type"] == "DELETED"


def test_async_dynamic_client(server: RunningServer, namespace: str) -> None:
    async def use(api: Any) -> None:
        async with AioDynamicClient(api) as found:
            maps = await found.resources.get(api_version="v1", kind="ConfigMap")
            body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
            await maps.create(body=body, namespace=namespace)
            patched = await maps.patch(
                name="a",
                namespace=namespace,
                body={"data": {"l": "w"}},
                content_type="application/merge-patch+json",
            )
            await maps.delete(name="a", namespace=namespace)

            assert patched.data.to_dict() == {"k": "v", "l": "w"}

    run_with(server, use)
