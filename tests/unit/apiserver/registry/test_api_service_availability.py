"""Whether APIServices are available, and why not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.apiserver.registry.api_service_availability import ApiServiceAvailability, availability
from allot.testing.servers import LocalServer

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SERVICES = "/api/v1/namespaces/default/services"


def an_api_service(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "v1.ext.example.com"},
        "spec": {
            "group": "ext.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            **spec,
        },
    }


BACKEND = {"service": {"name": "ext", "namespace": "default", "port": 443}}
SERVICE = RawObject({"spec": {"type": "ClusterIP", "ports": [{"port": 443, "name": "https"}]}})
PORT = {"name": "https", "port": 8443}


@pytest.mark.parametrize(
    ("spec", "service", "slices", "reason"),
    [
        pytest.param({}, None, [], "Local", id="local"),
        pytest.param(BACKEND, None, [], "ServiceNotFound", id="no-service"),
        pytest.param(
            BACKEND,
            RawObject({"spec": {"ports": [{"port": 80}]}}),
            [],
            "ServicePortError",
            id="port",
        ),
        pytest.param(BACKEND, SERVICE, [], "EndpointsNotFound", id="no-slices"),
        pytest.param(
            BACKEND,
            SERVICE,
            [{"ports": [PORT], "endpoints": []}],
            "MissingEndpoints",
            id="no-addresses",
        ),
        pytest.param(
            BACKEND,
            SERVICE,
            [{"ports": [{"name": "other"}], "endpoints": [{"addresses": ["10.0.0.9"]}]}],
            "MissingEndpoints",
            id="other-port",
        ),
        pytest.param(
            BACKEND,
            SERVICE,
            [{"ports": [PORT], "endpoints": [{"addresses": ["10.0.0.9"]}]}],
            "FailedDiscoveryCheck",
            id="not-passed-on",
        ),
    ],
)
def test_reason(
    spec: dict[str, Any], service: RawObject | None, slices: list[dict[str, Any]], reason: str
) -> None:
    found = availability(RawObject(an_api_service(**spec)), service, map(RawObject, slices))

    assert found.reason == reason
    assert found.status == ("True" if reason == "Local" else "False")


async def condition(server: LocalServer, reason: str) -> dict[str, Any]:
    """The condition, when it has this reason."""
    async with asyncio.timeout(60):
        while True:
            found = await server.get(f"{API_SERVICES}/v1.ext.example.com")
            for each in found.get("status", {}).get("conditions", []):
                if each["reason"] == reason:
                    shown: dict[str, Any] = each
                    return shown
            await asyncio.sleep(0.01)


def test_the_condition_follows_the_service() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(API_SERVICES, an_api_service(**BACKEND, insecureSkipTLSVerify=True))
            missing = await condition(server, "ServiceNotFound")
            assert missing["message"] == 'service/ext in "default" is not present'
            assert missing["status"] == "False"

            for path in ("", "/things"):
                answer = await server.ask("GET", f"/apis/ext.example.com/v1{path}")
                assert (answer.code, answer.content) == (503, b"service unavailable\n")

            ports = [{"port": 443, "name": "https"}]
            await server.post(SERVICES, {"metadata": {"name": "ext"}, "spec": {"ports": ports}})
            await condition(server, "EndpointsNotFound")

    asyncio.run(run())


def test_local_ones_are_available_at_once() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(API_SERVICES, an_api_service())
            assert (await condition(server, "Local"))["status"] == "True"

    asyncio.run(run())


def test_services_are_looked_at_only_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    plain = ApiServiceAvailability._look_at_all

    async def counting(self: ApiServiceAvailability) -> None:
        looks.append(1)
        await plain(self)

    monkeypatch.setattr(ApiServiceAvailability, "_look_at_all", counting)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(API_SERVICES, an_api_service())
            await condition(server, "Local")
            before = len(looks)
            for number in range(20):
                spec = {"ports": [{"port": 443}]}
                await server.post(SERVICES, {"metadata": {"name": f"s{number}"}, "spec": spec})
            assert len(looks) == before

    asyncio.run(run())
