"""Permit: a plugin can hold back a pod that has a node, allow it later, or reject it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest

from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import PermitPlugin, PermitResult
from allot.scheduler.framework.status import WAIT, Status, unschedulable
from allot.scheduler.framework.waiting_pods import MAX_PERMIT_SECONDS, WaitingPod, WaitingPods
from allot.scheduler.plugins.eviction import Evictor
from allot.scheduler.state.pods import PodInfo
from allot.testing.virtual_time import VirtualTimeLoop
from tests.unit.client.fakes import START, scripted
from tests.unit.scheduler.core.test_scheduler import NODE_ADDED, Stage
from tests.unit.scheduler.state.objects import a_node_facts, a_pod_info

UID = "uid-default-pod"


class Permits(PermitPlugin):
    name: ClassVar[str] = "Permits"

    def __init__(self, status: Status = WAIT, seconds: float = 60.0) -> None:
        self._result = PermitResult(status, seconds)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        return self._result


class PermitStage(Stage):
    """A scheduler whose permit plugin answers as told."""

    def __init__(self, status: Status = WAIT, seconds: float = 60.0) -> None:
        super().__init__(1, Permits(status, seconds))
        self.waiting_pods: WaitingPods = self.scheduler._waiting_pods

    @property
    def waiting(self) -> WaitingPod:
        (waiting,) = self.waiting_pods
        return waiting


def played(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story)


def test_a_pod_waits_with_its_node_until_it_is_allowed() -> None:
    async def story() -> None:
        stage = PermitStage()
        await stage.attempt(a_pod_info())
        assert stage.plugin.said == ["filter", "reserve"]
        assert stage.cluster.is_assumed(UID)
        assert stage.waiting.node_name == "n0"
        assert stage.waiting.pending_plugins == {"Permits"}

        stage.waiting.allow("Permits")
        await asyncio.sleep(0.05)

        assert stage.plugin.said == ["filter", "reserve", "pre_bind", "bind"]
        assert len(stage.waiting_pods) == 0
        assert stage.attempts("scheduled") == 1

    played(story())


def test_a_rejected_pod_is_unschedulable_because_of_the_plugin() -> None:
    async def story() -> None:
        stage = PermitStage()
        await stage.attempt(a_pod_info())
        stage.waiting.reject("Permits", "the group is incomplete")
        await asyncio.sleep(0.05)

        assert stage.plugin.said == ["filter", "reserve", "unreserve"]
        assert not stage.cluster.is_assumed(UID)
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE
        (queued,) = stage.queue.pods()
        assert queued.rejected_by == {"Permits"}
        message = "0/1 nodes are available: 1 the group is incomplete."
        assert stage.conditions() == [("Unschedulable", message)]
        assert stage.attempts("unschedulable") == 1

    played(story())


def test_events_during_the_wait_are_not_lost() -> None:
    """The pod is in flight until it is allowed: an event that may help makes it retry after a rejection."""

    async def story() -> None:
        stage = PermitStage()
        await stage.attempt(a_pod_info())
        stage.queue.on_cluster_event(NODE_ADDED, None, a_node_facts("n9"), 0.0)
        stage.waiting.reject("Everything", "no")
        await asyncio.sleep(0.05)

        assert stage.sub_queue() is SubQueue.BACKOFF

    played(story())


def test_an_immediate_rejection() -> None:
    async def story() -> None:
        stage = PermitStage(unschedulable("not now"))
        await stage.attempt(a_pod_info())

        assert stage.plugin.said == ["filter", "reserve", "unreserve"]
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE
        assert stage.attempts("unschedulable") == 1

    played(story())


def test_a_pod_that_is_deleted_while_it_waits_is_unreserved() -> None:
    async def story() -> None:
        stage = PermitStage()
        await stage.attempt(a_pod_info())
        stage.queue.delete(UID)
        assert stage.scheduler.bindings.stop(UID)
        await asyncio.sleep(0.05)

        assert stage.plugin.said[-1] == "unreserve"
        assert len(stage.waiting_pods) == 0

    played(story())


@pytest.mark.parametrize(
    ("timeouts", "seconds", "message"),
    [
        ({"A": 30.0}, 30.0, "rejected due to timeout after waiting 30s at plugin A"),
        ({"A": 30.0, "B": 5.0}, 5.0, "rejected due to timeout after waiting 5s at plugin B"),
        ({"A": 1e9}, MAX_PERMIT_SECONDS, "rejected due to timeout after waiting 900s at plugin A"),
    ],
)
def test_the_first_timeout_rejects(
    timeouts: dict[str, float], seconds: float, message: str
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        status = await WaitingPod(a_pod_info(), "n0", timeouts).wait()

        assert status.is_rejection
        assert status.message == message
        assert loop.time() - started == pytest.approx(seconds, abs=0.1)

    played(story())


def test_every_plugin_has_to_allow_the_pod() -> None:
    async def story() -> None:
        waiting = WaitingPod(a_pod_info(), "n0", {"A": 30.0, "B": 0.05})
        waiting.allow("B")
        assert waiting.pending_plugins == {"A"}
        wait = asyncio.create_task(waiting.wait())
        await asyncio.sleep(0.1)
        assert not wait.done(), "the timeout of B does not count any more"
        waiting.allow("A")
        assert (await wait).is_success
        waiting.reject("A", "too late")
        assert (await waiting.wait()).is_success

    played(story())


def test_a_victim_that_waits_is_rejected_instead_of_deleted() -> None:
    async def story() -> None:
        client, transport, _ = scripted()
        pods = WaitingPods()
        waiting = WaitingPod(a_pod_info("victim"), "n0", {"A": 30.0})
        pods.add(waiting)

        await Evictor(client, lambda: START, pods).evict(waiting.pod, a_pod_info("other"), "n0")

        assert (await waiting.wait()).message == "preempted"
        assert transport.requests == []

    played(story())
