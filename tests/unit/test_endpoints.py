"""Health and metrics endpoints of components."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket

import pytest
from prometheus_client import CollectorRegistry, Counter

from allot.endpoints import ComponentEndpoints, EndpointResponse, serve


def pages(*, ready: bool = True) -> ComponentEndpoints:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    return ComponentEndpoints(lambda: ready, lambda: registry)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "//healthz/"])
def test_a_component_that_works(path: str) -> None:
    assert pages().answer("GET", path)[0::2] == (200, b"ok")


def test_a_component_that_starts_is_alive_but_not_ready() -> None:
    starting = pages(ready=False)

    assert starting.answer("GET", "/livez").code == 200
    assert starting.answer("GET", "/readyz") == EndpointResponse(
        500, "text/plain; charset=utf-8", b"informers not synced\n"
    )


def test_metrics() -> None:
    answer = asyncio.run(pages().respond("GET", "/metrics"))

    assert answer.content_type.startswith("text/plain; version=0.0.4")
    assert b"things_total 3.0" in answer.body


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("POST", "/healthz", 405), ("GET", "/", 404), ("GET", "/debug/explain/a/b", 404)],
)
def test_what_is_not_there(method: str, path: str, code: int) -> None:
    assert pages().answer(method, path).code == code


def test_served_on_a_socket() -> None:
    async def main() -> list[tuple[int, bytes]]:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.listen()
        serving = asyncio.create_task(serve(pages(), listener))

        def ask(method: str, path: str) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with contextlib.closing(connection):
                connection.request(method, path)
                answer = connection.getresponse()
                return answer.status, answer.read()

        try:
            asked = (("GET", "/healthz"), ("HEAD", "/healthz"), ("POST", "/healthz"))
            return [await asyncio.to_thread(ask, *each) for each in asked]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    assert asyncio.run(main()) == [(200, b"ok"), (200, b""), (405, b"only GET is possible\n")]
