"""Before pods are collected, the server is asked whether their node is really gone."""

from __future__ import annotations

import asyncio

from allot.api.core import Pod
from allot.client.event_recorder import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.resources import PODS
from allot.client.transport import Response
from allot.controllers.controller import ControllerContext
from allot.controllers.pod_garbage_collection import PodGarbageCollector
from allot.controllers.pod_garbage_collection.controller import MissingNode
from tests.unit.client.fakes import FakeClock, Request, answer, scripted

POD = Pod(
    {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Succeeded"},
    }
)


def requests_about_a_missing_node(*answers: Response) -> tuple[list[Request], int]:
    """What is asked, and how many wait for another look afterwards."""

    async def run() -> tuple[list[Request], int]:
        client, transport, clock = scripted(*answers, hasty=False)
        assert isinstance(clock, FakeClock)
        informers = InformerFactory(client)
        collector = PodGarbageCollector(
            ControllerContext(client, informers, EventRecorder(client, "c", "i"))
        )
        informers.informer(PODS).store.put(POD.key, POD)
        await collector.reconcile(MissingNode("n"))
        await clock.advance(60)
        return transport.requests, len(collector.queue)

    return asyncio.run(run())


def test_a_node_that_the_server_has_is_looked_for_again() -> None:
    requests, waiting = requests_about_a_missing_node(answer(200, {"metadata": {"name": "n"}}))
    assert [(request.method, request.path) for request in requests] == [("GET", "/api/v1/nodes/n")]
    assert waiting == 1


def test_pods_of_a_node_that_is_gone_are_deleted() -> None:
    requests, waiting = requests_about_a_missing_node(answer(404), answer(200))
    assert [request.method for request in requests] == ["GET", "DELETE"]
    assert requests[1].body["preconditions"] == {"uid": "u"}
    assert waiting == 0
