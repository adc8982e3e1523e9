"""What pods that fit nowhere cost while they wait: the CPU of `allot up` when nothing else happens, and beside other pods.

Run it with `./scripts/bench cluster/pending [--nodes 500] [--pods 5000] [--seconds 60]`. Each pod has a claim from a template
that no device satisfies. Measured from when the last one is reported as unschedulable, first without any event, then
while one fitting pod per second is bound. Wanted: less than a tenth of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from clusters import (  # type: ignore[import-not-found]
    DRA,
    NAMESPACE,
    PODS_PATH,
    BoundTimes,
    UpProcess,
    call,
    claim_spec,
    in_parallel,
    plain_devices,
    pod,
    resource_slice,
    running_up,
    set_up,
)

from allot.client import PODS
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.options import Scope

DEVICES = 10
SETTLE_SECONDS = 10.0
WANTED_CORES = 0.1


def hopeless_pod(name: str) -> dict[str, Any]:
    wanted = pod(name)
    wanted["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "hopeless"
    return wanted  # type: ignore[no-any-return]


async def create_hopeless(client: Client, count: int) -> None:
    selector = {"cel": {"expression": 'device.attributes["bench.example.com"].model == "none"'}}
    template = {
        "metadata": {"name": "hopeless"},
        "spec": {"spec": claim_spec(selectors=[selector])},
    }
    await call(client, "POST", f"{DRA}/namespaces/{NAMESPACE}/resourceclaimtemplates", template)

    async def create(name: str) -> None:
        await call(client, "POST", PODS_PATH, hopeless_pod(name))

    await in_parallel(create, (f"hopeless-{number}" for number in range(count)))


async def wait_until_reported(client: Client, count: int) -> None:
    """Until every pod has the condition that says why it waits."""
    reported: set[str] = set()
    async with client.watch(PODS, Scope(NAMESPACE), timeout_seconds=3000) as batches:
        async for batch in batches:
            for event in batch:
                if event.object is not None and event.object.conditions:
                    reported.add(event.object.key.name)
            if len(reported) >= count:
                return


def cpu_seconds(up: UpProcess) -> list[float]:
    return [process.cpu_seconds for process in up.processes()]


async def bind_one_per_second(client: Client, seconds: float) -> int:
    bound = BoundTimes(client)
    await bound.start()
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        name = f"fitting-{count}"
        await call(client, "POST", PODS_PATH, pod(name))
        await bound.wait_for([name])
        count += 1
        await asyncio.sleep(1)
    await bound.stop()
    return count


async def measure(up: UpProcess, options: argparse.Namespace) -> None:
    client = connect(up.kubeconfig)
    try:
        await set_up(
            client, options.nodes, lambda name: resource_slice(name, plain_devices(DEVICES))
        )
        started = time.monotonic()
        await create_hopeless(client, options.pods)
        await wait_until_reported(client, options.pods)
        print(
            f"{options.pods} pods that fit nowhere, all reported after {time.monotonic() - started:.0f} s"
        )
        await asyncio.sleep(SETTLE_SECONDS)
        before = cpu_seconds(up)
        await asyncio.sleep(options.seconds)
        show("nothing happens", before, cpu_seconds(up), options.seconds)
        before, started = cpu_seconds(up), time.monotonic()
        count = await bind_one_per_second(client, options.seconds)
        show(f"{count} pods bound", before, cpu_seconds(up), time.monotonic() - started)
    finally:
        await client.transport.close()


def show(what: str, before: list[float], after: list[float], seconds: float) -> None:
    server, components = ((new - old) / seconds for old, new in zip(before, after, strict=True))
    print(
        f"{what:<20}API server {server:6.3f}   components {components:6.3f}   "
        f"both {server + components:6.3f} cores (wanted: below {WANTED_CORES})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, running_up(Path(directory)) as up:
        asyncio.run(measure(up, options))


if __name__ == "__main__":
    main()
