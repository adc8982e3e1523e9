"""What a pod with a claim from a template takes until it is bound: requests, and objects that are decoded.

Speed is guarded by counting steps, which are the same on every machine.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from allot import features
from allot.client.codecs import RawCodec, TypedCodec
from allot.client.in_process import InProcessTransport
from allot.client.informer import Informer
from allot.client.metadata import MetadataCodec
from allot.client.pod_codec import PodCodec
from allot.client.transport import Response
from allot.client.work_queue import WorkQueue
from allot.cluster import Cluster
from allot.components import ClusterParts, ClusterTime
from allot.controllers.garbage_collector.graph import OwnerGraph
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time

PODS = 20
DRA = "/apis/resource.k8s.io/v1"
ALL_PODS = "/api/v1/namespaces/default/pods"
TEMPLATE = {
    "metadata": {"name": "t", "namespace": "default"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    },
}
SETTLE_SECONDS = 20.0


class Steps:
    """Counts what all components of a process do."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.requests: Counter[str] = Counter()
        self.decoded: Counter[str] = Counter()
        self.queued: Counter[str] = Counter()
        self.owners: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._count_requests(patch)
        self._count_work(patch)
        self._count_calls_for_events(patch)
        for codec in (RawCodec, TypedCodec, MetadataCodec):
            for method in ("decode", "decode_event"):
                self._count_calls(patch, codec, method, self.decoded)
        self._count_calls(patch, PodCodec, "decode_event", self.decoded)
        self._count_calls(patch, OwnerGraph, "put", self.owners)

    def clear(self) -> None:
        self.requests.clear()
        self.decoded.clear()
        self.queued.clear()
        self.owners.clear()
        self.calls.clear()

    def _count_requests(self, patch: pytest.MonkeyPatch) -> None:
        send = InProcessTransport.request

        async def request(
            transport: InProcessTransport, method: str, path: str, *rest: Any
        ) -> Response:
            _, is_of_pods, resource = path.partition("/namespaces/default/")
            if is_of_pods:  # and no discovery
                self.requests[f"{method} {re.sub(r'/p[0-9]+[^/]*', '/NAME', resource)}"] += 1
            return await send(transport, method, path, *rest)

        patch.setattr(InProcessTransport, "request", request)

    def _count_work(self, patch: pytest.MonkeyPatch) -> None:
        put = WorkQueue._put

        def counted(queue: WorkQueue[Any], item: Any, now: float) -> None:
            self.queued[type(item).__name__] += 1
            put(queue, item, now)

        patch.setattr(WorkQueue, "_put", counted)

    def _count_calls_for_events(self, patch: pytest.MonkeyPatch) -> None:
        """Calls of Python functions for events of pods and claims, without those of the scheduler."""
        put = Informer.put

        def count(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call" and "/scheduler/" not in frame.f_code.co_filename:
                self.calls["for events"] += 1

        def counted(informer: Informer[Any], obj: Any) -> None:
            before = sys.getprofile()
            if informer.resource.plural in ("pods", "resourceclaims"):
                sys.setprofile(count)
            try:
                put(informer, obj)
            finally:
                sys.setprofile(before)

        patch.setattr(Informer, "put", counted)

    def _count_calls(
        self, patch: pytest.MonkeyPatch, owner: type, method: str, counts: Counter[str]
    ) -> None:
        call: Callable[..., Any] = getattr(owner, method)

        def counted(*arguments: Any) -> Any:
            counts[method] += 1
            return call(*arguments)

        patch.setattr(owner, method, counted)


async def bind_pods(server: LocalServer, steps: Steps) -> None:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}"} for number in range(PODS)]
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "100"}
    node = {"metadata": {"name": "n"}, "status": {"capacity": amounts, "allocatable": amounts}}
    await server.post("/api/v1/nodes", node)
    await server.post(f"{DRA}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
    await server.post(f"{DRA}/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    await server.post(f"{DRA}/namespaces/default/resourceclaimtemplates", TEMPLATE)
    await asyncio.sleep(SETTLE_SECONDS)
    steps.clear()
    for number in range(PODS):
        container = {"name": "m", "image": "i", "resources": {"claims": [{"name": "c"}]}}
        claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
        spec = {"containers": [container], "resourceClaims": claims}
        await server.post(ALL_PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})
    await asyncio.sleep(SETTLE_SECONDS)
    pods = (await server.get(ALL_PODS))["items"]
    assert all(pod["spec"].get("nodeName") == "n" for pod in pods)
    managers = {entry["manager"] for pod in pods for entry in pod["metadata"]["managedFields"]}
    assert "ResourceClaimController" in managers, "which applies the names of claims"


def steps_of_pods(patch: pytest.MonkeyPatch) -> Steps:
    async def story() -> Steps:
        clock = VirtualClock()
        async with LocalServer(clock=clock.whole_seconds) as server:
            time = ClusterTime(clock, clock.now, clock.whole_seconds)
            parts = ClusterParts(nodes=None)
            cluster = Cluster(server.server, TOKEN, parts, features.DEFAULTS, time)
            await cluster.start()
            try:
                await bind_pods(server, steps)
            finally:
                await cluster.stop()
        return steps

    steps = Steps(patch)
    return run_in_virtual_time(story())


def test_steps_of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of_pods(monkeypatch)

    assert {name: count / PODS for name, count in steps.requests.items()} == {
        "POST resourceclaims": 1,
        "PATCH pods/NAME/status": 1,
        "PUT resourceclaims/NAME": 1,
        "POST pods/NAME/binding": 1,
        "POST events": 1,
    }
    # Three versions of the pod and two of the claim, once for all components.
    assert steps.decoded["decode_event"] / PODS == 5
    # No answers: claims are stored as they are sent.
    assert steps.decoded["decode"] == 0
    # Creating the claim. All other changes leave nothing to do.
    assert {name: count / PODS for name, count in steps.queued.items()} == {"ClaimControllerKey": 1}
    # The pod and its claim: other versions have the same owners.
    assert steps.owners["put"] / PODS == 2
    # By informers and controllers, most of which find that there is nothing they care about.
    assert steps.calls["for events"] / PODS < 380
