"""Whether `allot up` leaves for each pod what Kubernetes leaves, and leaves it on disk.

Run it with `./scripts/bench cluster/same_work --against KUBECONFIG [--nodes 20] [--pods 100]`. The other cluster is real Kubernetes, running and empty.
Both get the same nodes, slices and pods with claims from a template. Then for each pod the pod itself, its claim and
its events are compared: fields, conditions, reservations, finalizers and managedFields; names, times, UIDs and the
choice among equal devices may differ. At the end `allot up` is killed without warning in the middle of more pods and
started again: what it had answered must be there. Ends with 1 if something differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clusters import (  # type: ignore[import-not-found]
    CLAIMS_PATH,
    NAMESPACE,
    PODS_PATH,
    BoundTimes,
    UpProcess,
    call,
    in_parallel,
    plain_devices,
    pod,
    resource_slice,
    running_up,
    set_up,
)

from allot.client.client import Client
from allot.client.connection import connect
from allot.client.errors import ClientError

DEVICES: Final = 10
SETTLE_SECONDS: Final = 8.0
EXPECTED: Final = frozenset(
    (
        # kube-scheduler nominates the node before it allocates devices, and the binding removes that again.
        "pods: metadata.managedFields[].fieldsV1.f:status.f:nominatedNodeName: {}",
        'pods: metadata.managedFields[].manager: "scheduler"',
        'pods: metadata.managedFields[].operation: "Update"',
        'pods: metadata.managedFields[].apiVersion: "v1"',
        'pods: metadata.managedFields[].fieldsType: "FieldsV1"',
        'pods: metadata.managedFields[].subresource: "status"',
        'pods: metadata.managedFields[].time: "*"',
    )
)
"""Differences with a reason."""
EVENTS_PATH: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
VARYING: Final = frozenset(
    (
        "uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime", "eventTime",
        "reportingInstance", "allocationTimestamp",
    )
)  # fmt: skip
"""Fields whose presence is compared, not their values."""
NAMES: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\bp\d{5}-c-[a-z0-9]+\b", "CLAIM"),
        (r"\bp\d{5}\.[0-9a-f]+\b", "EVENT"),
        (r"\bp\d{5}\b", "POD"),
        (r"\bn\d{5}\b", "NODE"),
        (r"\bd\d\b", "DEVICE"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"^(kube|allot)-(scheduler|controller-manager)$", r"\2"),
    )
)


def comparable(value: Any) -> Any:
    """A document without what may differ between two pods."""
    if isinstance(value, dict):
        return {
            _name(key): "*" if key in VARYING else comparable(entry)
            for key, entry in sorted(value.items())
        }
    if isinstance(value, list):
        entries = [comparable(entry) for entry in value]
        return sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
    return _name(value) if isinstance(value, str) else value


def _name(text: str) -> str:
    for pattern, name in NAMES:
        text = pattern.sub(name, text)
    return text


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """One line for each field of a document that can be compared."""
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from leaves(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for entry in value:
            yield from leaves(entry, f"{path}[]")
    else:
        yield f"{path}: {json.dumps(value)}"


async def left_behind(client: Client) -> Counter[str]:
    """How often each field occurs in pods, claims and events together."""
    found: Counter[str] = Counter()
    for path in (PODS_PATH, CLAIMS_PATH, EVENTS_PATH):
        kind = path.rpartition("/")[2]
        items = (await call(client, "GET", path))["items"]
        if path == EVENTS_PATH:  # nodes have some, too
            items = [item for item in items if item["regarding"]["kind"] == "Pod"]
        found[f"{kind}: objects"] = len(items)
        for item in items:
            found.update(f"{kind}: {line}" for line in leaves(comparable(item)))
    return found


async def run_pods(kubeconfig: Path, nodes: int, pods: int) -> Counter[str]:
    client = connect(kubeconfig)
    try:
        await set_up(client, nodes, lambda name: resource_slice(name, plain_devices(DEVICES)))
        await asyncio.sleep(SETTLE_SECONDS)
        bound = BoundTimes(client)
        await bound.start()
        names = [f"p{number:05d}" for number in range(pods)]
        await in_parallel(lambda name: call(client, "POST", PODS_PATH, pod(name)), names)
        await bound.wait_for(names)
        await bound.stop()
        await asyncio.sleep(SETTLE_SECONDS)  # events come later
        return await left_behind(client)
    finally:
        await client.transport.close()


# --- durability ---


async def write_until_killed(up: UpProcess, pods: int) -> dict[str, tuple[str, str]]:
    """UID and node (or none) of pods as they were answered or seen, when the server was killed."""
    client = connect(up.kubeconfig)
    uids: dict[str, str] = {}
    nodes: dict[str, str] = {}

    async def create(name: str) -> None:
        try:
            uids[name] = (await call(client, "POST", PODS_PATH, pod(name)))["metadata"]["uid"]
            if len(uids) % 10 == 0:
                for item in (await call(client, "GET", PODS_PATH))["items"]:
                    nodes[item["metadata"]["name"]] = item["spec"].get("nodeName", "")
        except ClientError:
            return  # killed
        if len(uids) >= pods // 2 and up.process.poll() is None:
            up.kill()

    try:
        await in_parallel(create, (f"p9{number:04d}" for number in range(pods)))
    finally:
        await client.transport.close()
    return {name: (uid, nodes.get(name, "")) for name, uid in uids.items()}


async def lost_writes(kubeconfig: Path, written: dict[str, tuple[str, str]]) -> list[str]:
    client = connect(kubeconfig)
    try:
        items = (await call(client, "GET", PODS_PATH))["items"]
    finally:
        await client.transport.close()
    stored = {
        item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"].get("nodeName", ""))
        for item in items
    }
    return [
        name
        for name, (uid, node) in written.items()
        if name not in stored or stored[name][0] != uid or (node and stored[name][1] != node)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--against", type=Path, required=True, help="a kubeconfig of Kubernetes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        with running_up(Path(directory)) as up:
            ours = asyncio.run(run_pods(up.kubeconfig, options.nodes, options.pods))
            written = asyncio.run(write_until_killed(up, options.pods))
        with running_up(Path(directory)) as up:
            lost = asyncio.run(lost_writes(up.kubeconfig, written))
    theirs = asyncio.run(run_pods(options.against, options.nodes, options.pods))
    differing = sorted(
        line for line in (ours.keys() | theirs.keys()) - EXPECTED if ours[line] != theirs[line]
    )
    print(f"{options.pods} pods: {len(theirs)} different fields in Kubernetes, {len(ours)} here")
    for line in differing:
        print(f"  {line}\n    {ours[line]} times here, {theirs[line]} there")
    print(f"killed after {len(written)} answered pods: {len(lost)} lost {lost[:5] or ''}")
    sys.exit(1 if differing or lost else 0)


if __name__ == "__main__":
    main()
