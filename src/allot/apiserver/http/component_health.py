"""Health checks of the components of a cluster, for ComponentStatuses.

A component in the same cluster tells its API server whether it is ready. The processes of `allot up --separate` are in a
file of the data directory. Any other component is probed where Kubernetes' components listen by default.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

PROBE_SECONDS: Final = 5.0
MAX_ANSWER: Final = 10 * 1024
SCHEDULER: Final = "scheduler"
CONTROLLER_MANAGER: Final = "controller-manager"
STORE: Final = "etcd-0"
PORTS: Final = {CONTROLLER_MANAGER: 10257, SCHEDULER: 10259}
"""Where kube-controller-manager and kube-scheduler listen by default."""
PROCESSES_FILE: Final = "processes.json"
"""In the data directory."""
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

    def register_processes(self, path: Path) -> None:
        """Use the processes that a file names from now on; components that it does not name are probed."""
        for name, port in PORTS.items():
            self._by_name[name] = partial(process_health, path, name, port)

    def register(self, name: str, check: HealthCheck) -> None:
        """Use this check of a component from now on."""
        self._by_name[name] = check

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    async def check(self, name: str) -> ComponentHealth:
        return await self._by_name[name]()


async def process_health(path: Path, name: str, port: int) -> ComponentHealth:
    """The health of a component that the file names, or else that of one which listens on the port."""
    processes = read_processes(path)
    if name not in processes:
        return await probe("127.0.0.1", port)
    pid = processes[name]
    if pid is not None and _is_running(pid):
        return ComponentHealth(True)
    return ComponentHealth(False, "its process is not ready")


def read_processes(path: Path) -> dict[str, int | None]:
    """The processes of components, None for one that is not ready; nothing if there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int | None])
    except (OSError, msgspec.DecodeError):
        return {}


def write_processes(path: Path, processes: Mapping[str, int | None]) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.encode(processes))
    new.replace(path)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


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
