"""`allot up --wait`: until nodes are ready and pods run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from allot.client.client import Client

WAIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_WORKLOADS: Final = {
    "deployment": "/apis/apps/v1/deployments",
    "statefulset": "/apis/apps/v1/statefulsets",
    "replicaset": "/apis/apps/v1/replicasets",
}


async def wait_until_settled(client: Client, seconds: float = WAIT_SECONDS) -> str:
    """Returns when nothing is `unsettled`; what still is after so many seconds, or an empty string."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while left := [text async for text in unsettled(client)]:
        if loop.time() > deadline:
            others = f", and for {len(left) - 1} more" if len(left) > 1 else ""
            return f"timed out after {seconds:g} s waiting for {left[0]}{others}"
        await asyncio.sleep(_POLL_SECONDS)
    return ""


async def unsettled(client: Client) -> AsyncIterator[str]:
    """Nodes that are not ready, workloads that lack pods, pods that do not run yet."""
    for node in await _items(client, "/api/v1/nodes"):
        conditions = node.get("status", {}).get("conditions") or ()
        if not any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
            yield f"node {node['metadata']['name']} to be ready"
    for kind, path in _WORKLOADS.items():
        for item in await _items(client, path):
            wanted = item["spec"].get("replicas", 1)
            ready = item.get("status", {}).get("readyReplicas", 0)
            if ready < wanted:
                yield f"{kind} {_name(item)} to have {wanted} pods ready, it has {ready}"
    for pod in await _items(client, "/api/v1/pods"):
        phase = pod.get("status", {}).get("phase", "Pending")
        if phase not in ("Running", "Succeeded", "Failed"):
            yield f"pod {_name(pod)} to run{_reason(pod)}"


def _name(item: dict[str, Any]) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _reason(pod: dict[str, Any]) -> str:
    messages = _messages(pod)
    return f" ({text})" if (text := next(messages, "")) else ""


def _messages(pod: dict[str, Any]) -> Iterator[str]:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("message"):
            yield condition["message"]


async def _items(client: Client, path: str) -> list[dict[str, Any]]:
    response = await client.request("GET", path, may_repeat=True)
    items: list[dict[str, Any]] = json.loads(response.body)["items"]
    return items
