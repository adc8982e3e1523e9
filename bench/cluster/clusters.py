"""Clusters that are measured from outside, over TLS: `allot up` as a process of its own, or any that has a kubeconfig."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from allot.client import PODS
from allot.client.client import Client
from allot.client.options import Scope
from allot.client.transport import JSON

SOURCE: Final = Path(__file__).parents[2] / "src"
PROGRAM: Final = ("-c", "from allot.cli.main import run; run()")
START_SECONDS: Final = 300.0
STOP_SECONDS: Final = 60.0
BOUND_SECONDS: Final = 900.0
WORKERS: Final = 8
DRA: Final = "/apis/resource.k8s.io/v1"
DRIVER: Final = "bench.example.com"
CLASS: Final = "bench"
NAMESPACE: Final = "default"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS_PATH: Final = f"{DRA}/namespaces/{NAMESPACE}/resourceclaims"
NO_HEARTBEATS: Final = "--controllers *,-node-lifecycle-controller"
"""For runs of more than 50 s: nodes here send no heartbeats, and would all become unreachable in the middle."""
MERGE_PATCH: Final = "application/merge-patch+json"


class Process(NamedTuple):
    """One process of a cluster: what it has used so far."""

    pid: int
    cpu_seconds: float
    resident_mib: float


class UpProcess:
    """`allot up`, from the checkout that this file belongs to."""

    def __init__(
        self, data: Path, arguments: Sequence[str] = (), environment: Mapping[str, str] = {}
    ) -> None:
        self.data = data
        self.started = time.monotonic()
        self._log = Path(f"{data}.log").open("wb+")  # noqa: SIM115 - closed by stop()
        self.process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, *PROGRAM, "up", "--data-dir", str(data), "--port", "0", *arguments],
            env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    def wait_until_ready(self) -> float:
        """Seconds since the start."""
        while b"is ready" not in (told := self._told()):
            if self.process.poll() is not None or time.monotonic() > self.started + START_SECONDS:
                raise SystemExit(f"allot up did not start: {told.decode()[-2000:]}")
            time.sleep(0.01)
        return time.monotonic() - self.started

    def processes(self) -> list[Process]:
        return [read_process(pid) for pid in descendants(self.process.pid)]

    def kill(self) -> None:
        """All processes, without a chance to write anything."""
        for pid in [*descendants(self.process.pid)]:
            os.kill(pid, 9)
        self.process.wait(STOP_SECONDS)
        self._log.close()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
        self._log.close()

    def _told(self) -> bytes:
        return Path(self._log.name).read_bytes()


@contextmanager
def running_up(directory: Path, options: str = "--empty") -> Iterator[UpProcess]:
    """`allot up`, ready, until the end of the block."""
    up = UpProcess(directory / "data", shlex.split(options))
    try:
        up.wait_until_ready()
        yield up
    finally:
        up.stop()


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def read_process(pid: int) -> Process:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int(fields[21])
    page_size, ticks_per_second = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    return Process(pid, ticks / ticks_per_second, pages * page_size / 2**20)


# --- requests ---


async def call(client: Client, method: str, path: str, body: Any = None, kind: str = JSON) -> Any:
    """The answer to a request, which must succeed."""
    content = None if body is None else msgspec.json.encode(body)
    response = await client.transport.request(method, path, None, content, kind)
    if response.code >= 300:
        raise SystemExit(f"{method} {path}: {response.code} {response.body.decode()[:500]}")
    return msgspec.json.decode(response.body)


async def in_parallel(work: Callable[[str], Awaitable[Any]], names: Iterable[str]) -> None:
    waiting = iter(names)

    async def worker() -> None:
        for name in waiting:
            await work(name)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


class BoundTimes:
    """When pods were seen to be bound, from an open watch. Servers end watches that lag behind: it is opened again."""

    def __init__(self, client: Client) -> None:
        self.times: dict[str, float] = {}
        self._client = client
        self._changed = asyncio.Event()
        self._is_open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._follow())
        await self._is_open.wait()

    async def wait_for(self, names: Iterable[str]) -> None:
        missing = set(names)
        async with asyncio.timeout(BOUND_SECONDS):
            while missing := {name for name in missing if name not in self.times}:
                self._changed.clear()
                await self._changed.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        scope = Scope(NAMESPACE, field_selector="spec.nodeName!=")
        while True:
            async with self._client.watch(PODS, scope, timeout_seconds=3000) as batches:
                self._is_open.set()
                async for batch in batches:
                    now = time.monotonic()
                    for event in batch:
                        if event.object is not None:
                            self.times.setdefault(event.object.key.name, now)
                    self._changed.set()


# --- objects ---


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"bench": "1"}}}


NODE_STATUS: Final = {
    "capacity": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
    "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}],
}


def resource_slice(name: str, devices: Sequence[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """The only slice of a node's pool."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices, **spec},
    }


def plain_devices(count: int) -> list[dict[str, Any]]:
    return [
        {"name": f"d{number}", "attributes": {"model": {"string": "a"}}} for number in range(count)
    ]


def claim_spec(**exactly: Any) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": CLASS, **exactly}}
    return {"devices": {"requests": [request]}}


def pod(name: str) -> dict[str, Any]:
    """A pod with a claim of its own, from the template `t`."""
    container = {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"bench": "1"},
            "terminationGracePeriodSeconds": 0,
            "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
            "containers": [container],
        },
    }


async def set_up(
    client: Client,
    nodes: int,
    publish: Callable[[str], dict[str, Any]],
    spec: dict[str, Any] | None = None,
) -> None:
    """A device class, a template, and nodes with the slice that `publish` makes for each."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    device_class = {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}}
    await call(client, "POST", f"{DRA}/deviceclasses", device_class)
    template = {"metadata": {"name": "t"}, "spec": {"spec": spec or claim_spec()}}
    templates = f"{DRA}/namespaces/{NAMESPACE}/resourceclaimtemplates"
    await call(client, "POST", templates, template)

    async def add(name: str) -> None:
        path = f"/api/v1/nodes/{name}"
        await call(client, "POST", "/api/v1/nodes", node(name))
        await call(client, "PATCH", f"{path}/status", {"status": NODE_STATUS}, MERGE_PATCH)
        # A node is tainted as not ready until a controller has seen its condition.
        await call(client, "PATCH", path, {"spec": {"taints": None}}, MERGE_PATCH)
        await call(client, "POST", f"{DRA}/resourceslices", publish(name))

    await in_parallel(add, (f"n{number:05d}" for number in range(nodes)))
