"""Objects of every cluster: recreated when deleted, as Kubernetes does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.apiserver.registry.kubernetes_endpoints import (
    ServerEndpoint,
    endpoint_documents,
    server_endpoint,
    with_address,
)
from allot.testing.servers import LocalServer


async def recreated(server: LocalServer, path: str) -> dict[str, Any]:
    """The object that comes after the one at `path` is deleted."""
    before = (await server.get(path))["metadata"]["uid"]
    await server.ask("DELETE", path)
    async with asyncio.timeout(60):
        while True:
            answer = await server.ask("GET", path)
            if answer.code == 200 and answer.json["metadata"]["uid"] != before:
                found: dict[str, Any] = answer.json
                return found
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt",
    ],
)
def test_it_comes_back(path: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            before = await server.get(path)
            after = await recreated(server, path)

            assert after.get("spec") == before.get("spec")
            assert after["metadata"].get("labels") == before["metadata"].get("labels")

    asyncio.run(run())


def test_api_services_do_not_come_back() -> None:
    async def run() -> None:
        path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"
        async with LocalServer() as server:
            await server.ask("DELETE", path)
            await recreated(server, "/api/v1/namespaces/default/services/kubernetes")

            assert (await server.ask("GET", path)).code == 404

    asyncio.run(run())


# --- endpoints ---


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        pytest.param("10.1.2.3:6443", ServerEndpoint("10.1.2.3", 6443), id="address"),
        pytest.param("[fd00::1]:6443", ServerEndpoint("fd00::1", 6443), id="ipv6"),
        pytest.param("127.0.0.1:6443", None, id="loopback"),
        pytest.param("localhost:6443", None, id="name"),
        pytest.param("", None, id="in-process"),
    ],
)
def test_server_endpoint(bound: str, expected: ServerEndpoint | None) -> None:
    assert server_endpoint(bound) == expected


def test_every_server_adds_its_address() -> None:
    first, second = ServerEndpoint("10.0.0.5", 6443), ServerEndpoint("10.0.0.6", 6443)
    for stored, wanted in zip(endpoint_documents(first), endpoint_documents(second), strict=True):
        merged = with_address(stored, wanted)

        assert "10.0.0.5" in str(merged)
        assert "10.0.0.6" in str(merged)
        assert with_address(merged, wanted) == merged
        assert with_address(merged, stored) == merged


def test_endpoints_of_another_port_are_replaced() -> None:
    gone, own = ServerEndpoint("10.0.0.5", 7443), ServerEndpoint("10.0.0.6", 6443)
    for stored, wanted in zip(endpoint_documents(gone), endpoint_documents(own), strict=True):
        assert "10.0.0.5" not in str(with_address(stored, wanted))
