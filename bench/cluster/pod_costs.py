"""CPU time per pod of `allot up`, by process, component and phase, while pods with claims from a template are bound.

Run it with `./scripts/bench cluster/pod_costs [--nodes 100] [--pods 500] [--up "--separate"] [--load COMMAND] [--json FILE]`. Pods are
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
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from clusters import (  # type: ignore[import-not-found]
    PODS_PATH,
    SOURCE,
    BoundTimes,
    UpProcess,
    call,
    descendants,
    in_parallel,
    plain_devices,
    pod,
    resource_slice,
    set_up,
)

from allot.client.client import Client
from allot.client.connection import connect

SAMPLING: Final = Path(__file__).with_name("sampling")
START_SECONDS: Final = 120.0
SETTLE_SECONDS: Final = 2.0
DEVICES: Final = 10
THREADS: Final = "threads"


# --- the load ---


async def bind(client: Client, pods: int) -> None:
    """Create pods and return when all of them are bound."""
    names = [f"p{number:06d}" for number in range(pods)]
    bound = BoundTimes(client)
    await bound.start()
    await in_parallel(lambda name: call(client, "POST", PODS_PATH, pod(name)), names)
    await bound.wait_for(names)
    await bound.stop()


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
        python_path = os.pathsep.join((str(SAMPLING), str(SOURCE)))
        environment = {"PYTHONPATH": python_path, "ALLOT_SAMPLES": str(self._samples)}
        self.up = UpProcess(directory / "data", ["--no-nodes", *arguments], environment)

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

    def _signal(self, number: signal.Signals) -> list[int]:
        """Signals all processes of the cluster that run Python."""
        processes = [*descendants(self.up.process.pid)]
        for process in processes:
            os.kill(process, number)
        return processes


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
    client = connect(cluster.up.kubeconfig)
    try:
        await set_up(client, nodes, lambda name: resource_slice(name, plain_devices(DEVICES)))
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
            cluster.up.wait_until_ready()
            if options.load:
                cluster.begin()
                run_load(options.load, cluster.up.kubeconfig)
                usages = cluster.end()
            else:
                usages = asyncio.run(run_basic(cluster, options.nodes, options.pods))
        finally:
            cluster.up.stop()
    rows = rows_of(usages, options.pods)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
