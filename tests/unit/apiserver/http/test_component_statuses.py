from __future__ import annotations

import asyncio
import os
import socket
import ssl
from pathlib import Path

import pytest

from allot.apiserver.http.component_health import (
    CONTROLLER_MANAGER,
    SCHEDULER,
    ComponentHealth,
    probe,
    process_health,
    write_processes,
)
from allot.testing.cluster import AllotCluster
from allot.testing.servers import LocalServer
from tests.conformance.admission_webhook import make_certificates

STATUSES = "/api/v1/componentstatuses"


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    _, both = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context


async def probed(answer: bytes, context: ssl.SSLContext) -> ComponentHealth:
    """The health of a component that gives this answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        return await probe("127.0.0.1", server.sockets[0].getsockname()[1])


@pytest.mark.parametrize(
    ("answer", "health"),
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ComponentHealth(True), id="healthy"
        ),
        pytest.param(
            b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsick",
            ComponentHealth(False, "HTTP probe failed with statuscode: 500"),
            id="unhealthy",
        ),
    ],
)
def test_a_component_is_probed(
    answer: bytes, health: ComponentHealth, certificate: ssl.SSLContext
) -> None:
    assert asyncio.run(probed(answer, certificate)) == health


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", b"what\r\n\r\n", b"x" * 20_000])
def test_an_answer_that_is_none_is_unhealthy(answer: bytes, certificate: ssl.SSLContext) -> None:
    found = asyncio.run(probed(answer, certificate))

    assert not found.is_healthy
    assert "/healthz" in found.message


def test_a_component_may_tell_its_health_itself() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            checks = server.server.component_checks
            checks.register(SCHEDULER, lambda: answered(ComponentHealth(True)))
            sick = ComponentHealth(False, "sick", "no pulse")
            checks.register(CONTROLLER_MANAGER, lambda: answered(sick))

            found = await server.ask("GET", STATUSES)

            conditions = {
                each["metadata"]["name"]: each["conditions"][0] for each in found.json["items"]
            }
            assert conditions == {
                "scheduler": {"type": "Healthy", "status": "True", "message": "ok"},
                "controller-manager": {
                    "type": "Healthy",
                    "status": "False",
                    "message": "sick",
                    "error": "no pulse",
                },
                "etcd-0": {"type": "Healthy", "status": "True", "message": "ok"},
            }

    asyncio.run(run())


async def answered(health: ComponentHealth) -> ComponentHealth:
    return health


@pytest.mark.allot_cluster(virtual_time=True)
def test_all_components_of_a_cluster_are_healthy(allot_cluster: AllotCluster) -> None:
    found = allot_cluster.list("ComponentStatus")

    assert {each["metadata"]["name"]: each["conditions"][0]["status"] for each in found} == {
        "controller-manager": "True",
        "etcd-0": "True",
        "scheduler": "True",
    }


@pytest.mark.parametrize(
    ("processes", "is_healthy"),
    [
        pytest.param({SCHEDULER: os.getpid()}, True, id="ready"),
        pytest.param({SCHEDULER: None}, False, id="not-ready"),
        pytest.param({SCHEDULER: 2**22 + 1}, False, id="gone"),
        pytest.param({}, False, id="not-a-process-of-up"),
    ],
)
def test_processes_of_up(
    tmp_path: Path, processes: dict[str, int | None], is_healthy: bool
) -> None:
    path = tmp_path / "processes.json"
    write_processes(path, processes)

    health = asyncio.run(process_health(path, SCHEDULER, unused_port()))

    assert health.is_healthy == is_healthy
    assert ("/healthz" in health.message) == (not processes)


def test_without_a_file_components_are_probed(tmp_path: Path) -> None:
    health = asyncio.run(process_health(tmp_path / "none", SCHEDULER, unused_port()))

    assert "connection refused" in health.message


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
