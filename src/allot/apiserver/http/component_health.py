"""Health checks of the components of a cluster, for ComponentStatuses.

A component in the same cluster tells its API server whether it is ready. Any other one is probed where
Kubernetes' components listen by default.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

PROBE_SECONDS: Final = 5.0
MAX_ANSWER: Final = 10 * 1024
SCHEDULER: Final = "scheduler"
CONTROLLER_MANAGER: Final = "controller-manager"
STORE: Final = "etcd-0"
PORTS: Final = {CONTROLLER_MANAGER: 10257, SCHEDULER: 10259}
"""Where kube-controller-manager and kube-scheduler listen by default."""
PARTS: Final = {CONTROLLER_MANAGER: "controllers", SCHEDULER: "scheduler"}
"""The part of an allot cluster behind each component."""


class ComponentHealth(NamedTuple):
    """The outcome of one check."""

    is_healthy: bool
    message: str = "ok"
    error: str = ""


HealthCheck = Callable[[], Awaitable[ComponentHealth]]


class HealthChecks:
    """The health checks of a cluster's components by name."""

    def __init__(self, store: HealthCheck) -> None:
        self._by_name: dict[str, HealthCheck] = {
            name: partial(probe, "127.0.0.1", port) for name, port in PORTS.items()
        }
        self._by_name[STORE] = store

    def register(self, name: str, check: HealthCheck) -> None:
        """Use this check of a component from now on."""
        self._by_name[name] = check

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    async def check(self, name: str) -> ComponentHealth:
        return await self._by_name[name]()


async def probe(host: str, port: int) -> ComponentHealth:
    """What `/healthz` of a component answers. Its certificate is not verified, as in Kubernetes."""
    url = f"https://{host}:{port}/healthz"
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            code, body = await _get(host, port)
    except TimeoutError:
        problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    except ConnectionRefusedError:
        problem = f"dial tcp {host}:{port}: connect: connection refused"
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        problem = "EOF"
    except OSError as error:
        problem = str(error.strerror or error)
    else:
        if 200 <= code < 400:
            return ComponentHealth(True, body)
        return ComponentHealth(False, f"HTTP probe failed with statuscode: {code}")
    return ComponentHealth(False, f'Get "{url}": {problem}')


async def _get(host: str, port: int) -> tuple[int, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=MAX_ANSWER)
    try:
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        lengths = [
            int(value)
            for name, _, value in (line.partition(":") for line in lines)
            if name.lower() == "content-length"
        ]
        body = await reader.readexactly(min(lengths[0], MAX_ANSWER)) if lengths else b""
        code = first.partition(" ")[2].partition(" ")[0]
        return int(code), body.decode(errors="replace")
    finally:
        writer.transport.abort()
