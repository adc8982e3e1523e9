"""CPU time per pod of `allot up`, by process, component and phase, while pods with claims from a template are bound.

Run it with `./scripts/bench pod_costs [--nodes 100] [--pods 500] [--up "--separate"] [--load COMMAND] [--json FILE]`. Pods are
created over HTTPS by this process. Another load is a command, in which KUBECONFIG stands for the file. Every
Python process of the cluster samples its main thread each 2 ms of its CPU time (`sampling/`), which costs about 2 %.
Threads are other than the main one: commits of the store, large objects. Figures are shares of samples, so a phase of
less than 1 % needs more pods.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from allot.api import scheme
from allot.api.core import Node, Pod
from allot.api.identities import GroupVersionKind
from allot.client import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.options import Scope

SAMPLING: Final = Path(__file__).with_name("sampling")
SOURCE: Final = Path(__file__).parents[2] / "src"
PROGRAM: Final = ("-c", "from allot.cli.main import run; run()")
START_SECONDS: Final = 120.0
BOUND_SECONDS: Final = 600.0
SETTLE_SECONDS: Final = 2.0
WORKERS: Final = 8
DEVICES: Final = 10
DRIVER: Final = "bench.example.com"
NAMESPACE: Final = "default"
THREADS: Final = "threads"


# --- the load ---


def typed(kind: str, name: str, spec: Any, namespace: str = "") -> Any:
    """An object of resource.k8s.io."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    body = msgspec.json.encode({"metadata": metadata, "spec": spec})
    gvk = GroupVersionKind("resource.k8s.io", "v1", kind)
    return scheme.decode_object(body, gvk, datetime.now(UTC))


def node(name: str) -> Node:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    ready = {"type": "Ready", "status": "True", "reason": "Bench"}
    return Node(
        {
            "metadata": {"name": name, "labels": {"bench": "1"}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
        }
    )


def slice_of(name: str) -> Any:
    devices = [
        {"name": f"d{number}", "attributes": {"model": {"string": "a"}}}
        for number in range(DEVICES)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return typed("ResourceSlice", name, spec)


def pod(name: str) -> Pod:
    return Pod(
        {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "nodeSelector": {"bench": "1"},
                "terminationGracePeriodSeconds": 0,
                "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
                "containers": [
                    {"name": "m", "image": "pause", "resources": {"claims": [{"name": "c"}]}}
                ],
            },
        }
    )


async def in_parallel(work: Callable[[str], Awaitable[Any]], names: Iterable[str]) -> None:
    waiting = iter(names)

    async def worker() -> None:
        for name in waiting:
            await work(name)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


async def set_up(client: Client, nodes: int) -> None:
    expression = f'device.driver == "{DRIVER}"'
    selectors = [{"cel": {"expression": expression}}]
    await client.create(DEVICE_CLASSES, typed("DeviceClass", "bench", {"selectors": selectors}))
    asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": "bench"}}]}
    template = typed("ResourceClaimTemplate", "t", {"spec": {"devices": asked}}, NAMESPACE)
    await client.create(RESOURCE_CLAIM_TEMPLATES, template)

    async def add(name: str) -> None:
        await client.create(NODES, node(name))
        await client.update_status(NODES, node(name))
        await client.create(RESOURCE_SLICES, slice_of(name))

    await in_parallel(add, (f"n{number:05d}" for number in range(nodes)))


async def bind(client: Client, pods: int) -> None:
    """Create pods and return when all of them are bound."""
    is_open = asyncio.Event()

    async def count() -> None:
        bound: set[str] = set()
        scope = Scope(NAMESPACE, field_selector="spec.nodeName!=")
        async with client.watch(PODS, scope) as batches:
            is_open.set()
            async for batch in batches:
                bound |= {str(event.object.key) for event in batch if event.object is not None}
                if len(bound) >= pods:
                    return

    counting = asyncio.create_task(count())
    await is_open.wait()
    await in_parallel(
        lambda name: client.create(PODS, pod(name)), (f"p{number:06d}" for number in range(pods))
    )
    await asyncio.wait_for(counting, BOUND_SECONDS)


# --- the cluster ---


class Usage(NamedTuple):
    """The CPU time of one process: its name, seconds of other threads, and of the main thread by component and phase."""

    process: str
    threads: float
    main: dict[tuple[str, str], float]


class SampledCluster:
    """`allot up` with a sampler in each of its processes."""

    def __init__(self, directory: Path, arguments: list[str]) -> None:
        self._samples = directory / "samples"
        self._samples.mkdir()
        self._data = directory / "data"
        python_path = os.pathsep.join((str(SAMPLING), str(SOURCE)))
        self._log = (directory / "log").open("wb+")
        self._process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, *PROGRAM, "up", "--data-dir", str(self._data), "--port", "0",
             "--no-nodes", *arguments],
            env={**os.environ, "PYTHONPATH": python_path, "ALLOT_SAMPLES": str(self._samples)},
            stdout=subprocess.PIPE,
            stderr=self._log,
        )  # fmt: skip
        os.set_blocking(self._process.stdout.fileno(), False)  # type: ignore[union-attr]

    @property
    def kubeconfig(self) -> Path:
        return self._data / "kubeconfig"

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        told, deadline = b"", time.monotonic() + START_SECONDS
        while b"ready" not in told:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"allot up did not start: {self._log_text()}")
            told += self._process.stdout.read() or b""
            time.sleep(0.1)

    def begin(self) -> None:
        self._signal(signal.SIGUSR1)

    def end(self) -> list[Usage]:
        processes = self._signal(signal.SIGUSR2)
        deadline = time.monotonic() + START_SECONDS
        while len(found := [*self._samples.glob("*.json")]) < len(processes):
            if time.monotonic() > deadline:
                raise SystemExit(f"{len(processes) - len(found)} processes wrote no samples")
            time.sleep(0.1)
        return [usage_of(json.loads(path.read_text())) for path in found]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()

    def _signal(self, number: signal.Signals) -> list[int]:
        """Signals all processes of the cluster that run Python."""
        processes = [*descendants(self._process.pid)]
        for process in processes:
            os.kill(process, number)
        return processes

    def _log_text(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]


def descendants(process: int) -> Iterable[int]:
    yield process
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def usage_of(report: dict[str, Any]) -> Usage:
    samples = {(component, phase): count for component, phase, count in report["samples"]}
    samples.pop(("idle", "idle"), None)
    total = sum(samples.values()) or 1
    seconds = {where: report["main"] * count / total for where, count in samples.items()}
    return Usage(process_name(report["program"]), report["threads"], seconds)


def process_name(program: list[str]) -> str:
    """The subcommand, or the module."""
    if program[0].endswith(".py"):
        return Path(program[0]).stem.replace("_", " ")
    return " ".join(word for word in program[1:3] if not word.startswith("-"))


# --- the report ---


class Row(NamedTuple):
    process: str
    component: str
    phase: str
    milliseconds: float
    """Per pod."""


def rows_of(usages: list[Usage], pods: int) -> list[Row]:
    rows = []
    for usage in usages:
        for (component, phase), seconds in usage.main.items():
            rows.append(Row(usage.process, component, phase, seconds * 1e3 / pods))
        rows.append(Row(usage.process, THREADS, THREADS, usage.threads * 1e3 / pods))
    return sorted(rows, key=lambda row: -row.milliseconds)


def show(rows: list[Row]) -> None:
    total = sum(row.milliseconds for row in rows) or 1.0
    for column in ("process", "component", "phase"):
        sums: dict[str, float] = {}
        for row in rows:
            name = getattr(row, column)
            sums[name] = sums.get(name, 0.0) + row.milliseconds
        print(f"\n{column:<34}{'ms/pod':>8}{'share':>8}")
        for name, milliseconds in sorted(sums.items(), key=lambda entry: -entry[1]):
            print(f"{name:<34}{milliseconds:8.2f}{milliseconds / total:8.0%}")
    print(f"\n{'process, component, phase':<70}{'ms/pod':>8}")
    for row in rows:
        if row.milliseconds >= total / 200:
            print(f"{', '.join(row[:3]):<70}{row.milliseconds:8.2f}")
    print(f"\n{'total':<34}{total:8.2f} ms/pod")


def run_load(command: str, kubeconfig: Path) -> None:
    words = [word.replace("KUBECONFIG", str(kubeconfig)) for word in shlex.split(command)]
    subprocess.run(words, check=True)  # noqa: S603 - of the person who measures


async def run_basic(cluster: SampledCluster, nodes: int, pods: int) -> list[Usage]:
    client = connect(cluster.kubeconfig)
    try:
        await set_up(client, nodes)
        await asyncio.sleep(SETTLE_SECONDS)
        cluster.begin()
        started, used = time.monotonic(), time.process_time()
        await bind(client, pods)
        seconds, used = time.monotonic() - started, time.process_time() - used
        usages = cluster.end()
    finally:
        await client.transport.close()
    print(
        f"{pods} pods on {nodes} nodes in {seconds:.1f} s: {pods / seconds:.0f} pods/s; "
        f"the load took {used * 1e3 / pods:.2f} ms of CPU per pod"
    )
    return usages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--up", default="", help="options for allot up")
    parser.add_argument("--load", help="a command to run instead, with KUBECONFIG; give --pods too")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    options = parser.parse_args()
    if options.pods > options.nodes * DEVICES and not options.load:
        parser.error(
            f"there are {DEVICES} devices per node: at most {options.nodes * DEVICES} pods"
        )
    with tempfile.TemporaryDirectory() as directory:
        cluster = SampledCluster(Path(directory), shlex.split(options.up))
        try:
            cluster.wait_until_ready()
            if options.load:
                cluster.begin()
                run_load(options.load, cluster.kubeconfig)
                usages = cluster.end()
            else:
                usages = asyncio.run(run_basic(cluster, options.nodes, options.pods))
        finally:
            cluster.stop()
    rows = rows_of(usages, options.pods)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
