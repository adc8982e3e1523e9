"""Which pods are looked at."""

from __future__ import annotations

import asyncio

from allot.api.core import Node, Pod
from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.resources import NODES, PODS
from allot.controllers.controller import ControllerContext
from allot.controllers.taint_eviction import TaintEvictionController
from tests.unit.client.fakes import FakeClock, ScriptedTransport

EVICTS = {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
UNDATED = {"key": "k", "effect": "NoExecute"}
HARMLESS = {"key": "k", "effect": "NoSchedule"}


def node(version: int, *taints: dict[str, str], uid: str = "u") -> Node:
    metadata = {"name": "n", "uid": uid, "resourceVersion": str(version)}
    return Node({"metadata": metadata, "spec": {"taints": list(taints)}})


def pod(name: str, on: str) -> Pod:
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    return Pod({"metadata": metadata, "spec": {"nodeName": on}})


def test_only_pods_on_nodes_with_evicting_taints_are_looked_at() -> None:
    async def story() -> None:
        client = Client(ScriptedTransport(), clock=FakeClock())
        informers = InformerFactory(client)
        nodes, pods = informers.informer(NODES), informers.informer(PODS)
        recorder = EventRecorder(client, "c", "i")
        controller = TaintEvictionController(ControllerContext(client, informers, recorder))

        def is_looked_at(name: str, on: str = "n") -> bool:
            before = len(controller.queue)
            pods.put(pod(name, on))
            return len(controller.queue) > before

        assert not is_looked_at("no-node-yet")
        for number, (taints, expected) in enumerate(
            [
                ((), False),
                ((HARMLESS,), False),
                ((HARMLESS, EVICTS), True),
                ((EVICTS,), True),
                ((UNDATED,), True),
                ((HARMLESS,), False),
                ((EVICTS,), True),
            ]
        ):
            nodes.put(node(number, *taints))
            assert is_looked_at(f"p{number}") is expected
            assert not is_looked_at(f"elsewhere-{number}", "m")
            assert not is_looked_at(f"unbound-{number}", "")
        nodes.put(node(20, uid="successor"))
        assert not is_looked_at("on-the-successor")
        nodes.put(node(21, EVICTS, uid="successor"))
        assert is_looked_at("on-the-tainted-successor")
        nodes.drop(node(0).key)
        assert not is_looked_at("node-is-gone")

    asyncio.run(story())
