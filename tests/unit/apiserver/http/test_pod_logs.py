"""pods/log over HTTP, and connections that simulated containers do not have."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.times import written_time
from allot.testing.manifests import a_pod_manifest
from allot.testing.servers import LocalServer

PODS = "/api/v1/namespaces/default/pods"


async def a_running_pod(server: LocalServer, log: str, **state: Any) -> None:
    pod = a_pod_manifest("p")
    pod["metadata"]["annotations"] = {"allot.dev/log": log}
    pod["spec"]["nodeName"] = "n1"
    await server.post(PODS, pod)
    await set_state(server, state or {"running": {"startedAt": written_time(datetime.now(UTC))}})


async def set_state(server: LocalServer, state: dict[str, Any]) -> None:
    status = {
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": state,
    }
    body = {"status": {"phase": "Running", "containerStatuses": [status]}}
    merge = "application/merge-patch+json"
    answer = await server.ask("PATCH", f"{PODS}/p/status", body, content_type=merge)
    assert answer.code == 200, answer


def test_a_log_is_plain_text() -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            await a_running_pod(server, "one\ntwo")
            answer = await server.ask("GET", f"{PODS}/p/log?tailLines=1")
            assert (answer.code, answer.content) == (200, b"two\n")
            assert answer.header("content-type") == ["text/plain"]
            for query, code in (("container=zz", 400), ("tailLines=-1", 422), ("x", 200)):
                assert (await server.ask("GET", f"{PODS}/p/log?{query}")).code == code
            assert (await server.ask("GET", f"{PODS}/nosuch/log")).code == 404

    asyncio.run(scenario())


def test_following_ends_with_the_container() -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            begin = datetime.now(UTC) - timedelta(seconds=5)
            await a_running_pod(
                server, "start\nevery 500ms: {n}", running={"startedAt": written_time(begin)}
            )
            following = asyncio.create_task(server.ask("GET", f"{PODS}/p/log?follow=true"))
            await asyncio.sleep(1.5)
            assert not following.done()
            ended = {
                "startedAt": written_time(begin),
                "finishedAt": written_time(datetime.now(UTC)),
            }
            await set_state(server, {"running": None, "terminated": {"exitCode": 0, **ended}})
            async with asyncio.timeout(30):
                answer = await following
            lines = answer.content.decode().split()
            assert lines[0] == "start"
            numbers = [int(line) for line in lines[1:]]
            assert numbers == list(range(1, len(numbers) + 1)), "no line twice, none left out"

    asyncio.run(scenario())


def test_a_changed_annotation_is_read_at_once() -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            begin = datetime.now(UTC) - timedelta(seconds=5)
            await a_running_pod(
                server, "every 1h: x\none", running={"startedAt": written_time(begin)}
            )
            assert (await server.ask("GET", f"{PODS}/p/log")).content == b"one\n"
            change = {"metadata": {"annotations": {"allot.dev/log": "every 1h: x\ntwo"}}}
            merge = "application/merge-patch+json"
            await server.ask("PATCH", f"{PODS}/p", change, content_type=merge)
            assert (await server.ask("GET", f"{PODS}/p/log")).content == b"two\n"

    asyncio.run(scenario())


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_connections(part: str, method: str) -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            await a_running_pod(server, "")
            answer = await server.ask(method, f"{PODS}/p/{part}")
            assert answer.code == 400
            assert answer.json["message"] == (
                f"{part} is not available for pod p: containers of simulated nodes run no processes"
            )
            assert (await server.ask(method, f"{PODS}/nosuch/{part}")).code == 404

    asyncio.run(scenario())


CORE = "/api/v1"
NO_PROCESSES = "containers of simulated nodes run no processes"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{PODS}/p/proxy", f"proxy is not available for pod p: {NO_PROCESSES}"),
        (
            f"{PODS}/https:p:8443/proxy/a//b?c=d",
            f"proxy is not available for pod p: {NO_PROCESSES}",
        ),
        (f"{PODS}/a:b:c:d/proxy/", 'invalid pod request "a:b:c:d"'),
        (
            f"{CORE}/namespaces/default/services/web:http/proxy/",
            f"proxy is not available for service web: {NO_PROCESSES}",
        ),
        (
            f"{CORE}/nodes/n1/proxy/metrics",
            "proxy is not available for node n1: kubelets of simulated nodes serve no HTTP",
        ),
    ],
)
def test_proxies(method: str, path: str, message: str) -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            await a_running_pod(server, "")
            service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
            await server.post(f"{CORE}/namespaces/default/services", service)
            await server.post(f"{CORE}/nodes", {"metadata": {"name": "n1"}})
            answer = await server.ask(method, path)
            assert (answer.code, answer.json["message"]) == (400, message)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "path", [f"{PODS}/nosuch/proxy/", f"{CORE}/namespaces//pods/p/proxy", f"{PODS}/p/status/proxy"]
)
def test_proxies_of_what_is_missing(path: str) -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            await a_running_pod(server, "")
            assert (await server.ask("GET", path)).code == 404

    asyncio.run(scenario())
