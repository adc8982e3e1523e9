"""From the request that creates a pod to the event that shows it bound, one pod at a time on an idle cluster.

Run it with `./scripts/bench cluster/latency [--nodes 500] [--pods 50] [--rounds 3] [--against KUBECONFIG]`. Pods have a claim from a template.
`allot up` is started for this; the other cluster, such as real Kubernetes, runs already and is empty; its nodes stay
ready without heartbeats if it runs without node-lifecycle-controller, as `allot up` does here. Both take turns
in one run, and after each pod a control says what the machine takes for as many wake-ups and writes to the disk
(`control.py`). Wanted: below 10 ms at the median.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from clusters import (  # type: ignore[import-not-found]
    NO_HEARTBEATS,
    PODS_PATH,
    BoundTimes,
    call,
    plain_devices,
    pod,
    resource_slice,
    running_up,
    set_up,
)
from control import Control, in_words, running_control  # type: ignore[import-not-found]

from allot.client.client import Client
from allot.client.connection import connect

PAUSE_SECONDS = 0.1
SETTLE_SECONDS = 5.0
DEVICES = 10
WANTED_MILLISECONDS = 10.0


async def latencies(client: Client, names: list[str], control: Control) -> list[float]:
    """Milliseconds for each pod. The control is asked after each, with the same pause before."""
    bound = BoundTimes(client)
    await bound.start()
    found = []
    try:
        for name in names:
            started = time.monotonic()
            await call(client, "POST", PODS_PATH, pod(name))
            await bound.wait_for([name])
            found.append((bound.times[name] - started) * 1e3)
            await asyncio.sleep(PAUSE_SECONDS)
            await control.ask()
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await bound.stop()
    return found


async def measure(kubeconfigs: dict[str, Path], nodes: int, pods: int, rounds: int) -> None:
    clients = {name: connect(kubeconfig) for name, kubeconfig in kubeconfigs.items()}
    found: dict[str, list[float]] = {name: [] for name in clients}
    try:
        for client in clients.values():
            await set_up(client, nodes, lambda name: resource_slice(name, plain_devices(DEVICES)))
        await asyncio.sleep(SETTLE_SECONDS)
        async with running_control() as control:
            for number in range(rounds):
                for name, client in clients.items():
                    names = [f"p{number}-{count}" for count in range(pods)]
                    found[name] += await latencies(client, names, control)
    finally:
        for client in clients.values():
            await client.transport.close()
    print(
        f"{nodes} nodes, {rounds * pods} pods one after the other: milliseconds, created to bound"
    )
    for name, values in {**found, "control": control.times}.items():
        print(f"{name:<12}{in_words(values)}")
    print(f"wanted: a median below {WANTED_MILLISECONDS:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=50, help="pods in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, help="the kubeconfig of another, empty cluster")
    options = parser.parse_args()
    up_options = f"--empty {NO_HEARTBEATS}"
    with tempfile.TemporaryDirectory() as directory, running_up(Path(directory), up_options) as up:
        kubeconfigs = {"allot": up.kubeconfig}
        if options.against:
            kubeconfigs["other"] = options.against
        asyncio.run(measure(kubeconfigs, options.nodes, options.pods, options.rounds))


if __name__ == "__main__":
    main()
