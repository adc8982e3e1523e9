"""Pods that wait for binding conditions (KEP-5007), and pods that get partitions of devices, measured from outside.

Run it with `./scripts/bench cluster/binding_conditions [--nodes 5000] [--waiting 1000] [--rate 50] [--against KUBECONFIG]`. Pods are created and
allocated, and wait. Then the conditions are set, `--rate` claims per second, by a client that stands for a driver's controller: from the
request that sets a condition to the event that shows the pod bound. Meanwhile the others wait. At the end the same
number of pods gets partitions with shared counters. `allot up` is started for this; another cluster runs already and is
empty. A control says meanwhile what the machine takes for a few wake-ups and writes to the disk (`control.py`). Wanted:
below 50 ms for 99 % of pods.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from clusters import (  # type: ignore[import-not-found]
    CLAIMS_PATH,
    DRA,
    DRIVER,
    NO_HEARTBEATS,
    PODS_PATH,
    BoundTimes,
    call,
    claim_spec,
    in_parallel,
    pod,
    resource_slice,
    running_up,
    set_up,
)
from control import Control, asked_every, in_words, running_control  # type: ignore[import-not-found]

from allot.client.client import Client
from allot.client.connection import connect

WANTED_MILLISECONDS = 50.0
SETTLE_SECONDS = 5.0
POLL_SECONDS = 0.5
CONTROL_SECONDS = 0.05
ALLOCATED_SECONDS = 900.0
PARTITIONS = "partitions"
GATES = (
    "DRADeviceBindingConditions=true,DRAResourceClaimDeviceStatus=true,DRAPartitionableDevices=true"
)
READY = {
    "type": "Attached",
    "status": "True",
    "reason": "Attached",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def fabric_devices() -> list[dict[str, Any]]:
    """Devices that must be attached before a pod starts."""
    return [
        {"name": f"d{number}", "bindingConditions": ["Attached"], "bindingFailureConditions": ["Lost"]}
        for number in range(2)
    ]  # fmt: skip


def partitions() -> list[dict[str, Any]]:
    """A whole device and its halves, of which either the whole or the halves can be used."""
    shares = {"whole": "2", "half-0": "1", "half-1": "1"}
    return [
        {
            "name": name,
            "attributes": {"isHalf": {"bool": name != "whole"}},
            "consumesCounters": [{"counterSet": "gpu", "counters": {"units": {"value": units}}}],
        }
        for name, units in shares.items()
    ]


async def publish_partitions(client: Client, nodes: int) -> None:
    """Pools of their own: a slice with the counters, another with the devices."""
    counters = [{"name": "gpu", "counters": {"units": {"value": "2"}}}]

    async def publish(name: str) -> None:
        pool = {"name": f"{name}-partitions", "generation": 1, "resourceSliceCount": 2}
        for suffix, content in (
            ("counters", {"sharedCounters": counters}),
            ("devices", {"devices": partitions()}),
        ):
            body = resource_slice(name, [])
            body["metadata"]["name"] = f"{name}-{suffix}"
            del body["spec"]["devices"]
            body["spec"] |= {"driver": f"{PARTITIONS}.{DRIVER}", "pool": pool, **content}
            await call(client, "POST", f"{DRA}/resourceslices", body)

    await in_parallel(publish, (f"n{number:05d}" for number in range(nodes)))
    driver = f"{PARTITIONS}.{DRIVER}"
    expression = f'device.driver == "{driver}" && device.attributes["{driver}"].isHalf'
    selectors = [{"cel": {"expression": expression}}]
    body = {"metadata": {"name": PARTITIONS}, "spec": {"selectors": selectors}}
    await call(client, "POST", f"{DRA}/deviceclasses", body)
    template = {"metadata": {"name": PARTITIONS}, "spec": {"spec": claim_spec()}}
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = PARTITIONS
    await call(client, "POST", CLAIMS_PATH.replace("claims", "claimtemplates"), template)


def partition_pod(name: str) -> dict[str, Any]:
    body: dict[str, Any] = pod(name)
    body["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = PARTITIONS
    return body


async def allocated_claims(client: Client, count: int) -> list[dict[str, Any]]:
    """All claims, when they are allocated."""
    deadline = time.monotonic() + ALLOCATED_SECONDS
    while time.monotonic() < deadline:
        claims: list[dict[str, Any]] = (await call(client, "GET", CLAIMS_PATH))["items"]
        if sum("allocation" in claim.get("status", {}) for claim in claims) >= count:
            return claims
        await asyncio.sleep(POLL_SECONDS)
    raise SystemExit(f"not all of {count} claims were allocated")


async def set_condition(client: Client, claim: dict[str, Any]) -> None:
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    device = {field: result[field] for field in ("driver", "pool", "device")}
    claim["status"]["devices"] = [{**device, "conditions": [READY]}]
    await call(client, "PUT", f"{CLAIMS_PATH}/{claim['metadata']['name']}/status", claim)


async def waits(client: Client, pods: int, rate: float, control: Control) -> list[float]:
    """Milliseconds from condition to binding of each pod, while the control is asked."""
    names = [f"p{number:05d}" for number in range(pods)]
    await in_parallel(lambda name: call(client, "POST", PODS_PATH, pod(name)), names)
    claims = await allocated_claims(client, pods)
    await asyncio.sleep(SETTLE_SECONDS)
    bound = BoundTimes(client)
    await bound.start()
    await asyncio.sleep(SETTLE_SECONDS)  # what opening a watch takes is not what is measured
    started, set_at, requests = time.monotonic(), {}, []
    async with asked_every(control, CONTROL_SECONDS):
        for number, claim in enumerate(claims):
            await asyncio.sleep(started + number / rate - time.monotonic())
            (owner,) = claim["metadata"]["ownerReferences"]
            set_at[owner["name"]] = time.monotonic()
            requests.append(asyncio.create_task(set_condition(client, claim)))
        await asyncio.gather(*requests)
        await bound.wait_for(names)
    await bound.stop()
    return [(bound.times[name] - set_at[name]) * 1e3 for name in names]


async def partition_rate(client: Client, pods: int) -> float:
    """Pods with partitions per second."""
    names = [f"half{number:05d}" for number in range(pods)]
    bound = BoundTimes(client)
    await bound.start()
    started = time.monotonic()
    await in_parallel(lambda name: call(client, "POST", PODS_PATH, partition_pod(name)), names)
    await bound.wait_for(names)
    await bound.stop()
    last: float = max(bound.times[name] for name in names)
    return pods / (last - started)


async def measure(name: str, kubeconfig: Path, options: argparse.Namespace) -> None:
    client = connect(kubeconfig)
    try:
        await set_up(client, options.nodes, lambda name: resource_slice(name, fabric_devices()))
        await asyncio.sleep(SETTLE_SECONDS)
        async with running_control() as control:
            found = await waits(client, options.waiting, options.rate, control)
        await publish_partitions(client, options.nodes)
        await asyncio.sleep(SETTLE_SECONDS)
        rate = await partition_rate(client, min(options.waiting, options.nodes * 2))
    finally:
        await client.transport.close()
    print(f"{name:<12}condition to bound, ms: {in_words(found)}; partitions: {rate:.0f} pods/s")
    print(f"{'control':<12}meanwhile, ms:          {in_words(control.times)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0, help="conditions per second")
    parser.add_argument("--against", type=Path, help="the kubeconfig of another, empty cluster")
    options = parser.parse_args()
    print(f"{options.waiting} pods wait on {options.nodes} nodes")
    up_options = f"--empty --feature-gates {GATES} {NO_HEARTBEATS}"
    with tempfile.TemporaryDirectory() as directory, running_up(Path(directory), up_options) as up:
        asyncio.run(measure("allot", up.kubeconfig, options))
    if options.against:
        asyncio.run(measure("other", options.against, options))
    print(f"wanted: condition to bound below {WANTED_MILLISECONDS:.0f} ms for 99 %")


if __name__ == "__main__":
    main()
