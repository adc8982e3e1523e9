from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec
import pytest

from allot.apiserver.kinds.pod_binding import plain_binding
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.transport import Response
from allot.scheduler.core import failure_handler
from allot.scheduler.core.attempt_reporter import MAX_REPORTS
from allot.scheduler.core.binding_cycles import MAX_BINDINGS
from allot.scheduler.core.pod_status import PodStatusReporter
from allot.scheduler.core.scheduler import ATTEMPTS_IN_A_ROW, SECONDS_IN_A_ROW, Scheduler
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.framework.bind_errors import BoundElsewhereError, UnknownBindingError
from allot.scheduler.framework.concurrency_limit import released_slot
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.plugins import (
    BindPlugin,
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    ReservePlugin,
)
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Status, failed, pending, unschedulable
from allot.scheduler.plugins.default_binder import DefaultBinder
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from tests.unit.client.fakes import ScriptedTransport, answer, scripted, settle, status
from tests.unit.scheduler.core.test_pod_status import Heard
from tests.unit.scheduler.state.objects import a_cluster, a_node_facts, a_pod_info

NODE_ADDED = ClusterEvent(NODE, Action.ADD)


class Everything(FilterPlugin, PostFilterPlugin, ReservePlugin, PreBindPlugin, BindPlugin):
    """One plugin for all points; what it answers can be changed, and what it is asked is noted."""

    name: ClassVar[str] = "Everything"
    filters_locally: ClassVar[bool] = False

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answers: dict[str, Status | Exception] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.nominated: str | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.rests = False
        """Whether to wait as plugins do that wait for others."""
        self.making_room = 0

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (EventRegistration(NODE_ADDED),)

    def _answer(self, point: str) -> Status:
        self.said.append(point)
        if point in self.meanwhile:
            self.meanwhile[point]()
        found = self.answers.get(point, SUCCESS)
        if isinstance(found, Exception):
            raise found
        return found

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return self._answer("filter")

    async def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        cluster: ClusterState,
        statuses: Mapping[str, Status],
    ) -> PostFilterResult:
        self.making_room += 1
        await self.open.wait()
        self.making_room -= 1
        status = self._answer("post_filter")
        return PostFilterResult(status, self.nominated)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._answer("reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.said.append("unreserve")

    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        return True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        async with released_slot() if self.rests else contextlib.nullcontext():
            await self.open.wait()
        return self._answer("pre_bind")

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        await self.open.wait()
        return self._answer("bind")


class Busy(ScriptedTransport):
    """Answers once its door is open, and counts who waits before it."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.door = asyncio.Event()
        self.door.set()
        self.waiting = 0
        self.most = 0

    async def request(self, *args: Any, **rest: Any) -> Response:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self.door.wait()
        self.waiting -= 1
        return await super().request(*args, **rest)


class Stage:
    """A scheduler with one node, no API server, and a clock that tests move."""

    def __init__(self, nodes: int = 1, *more: Plugin) -> None:
        self.plugin = Everything()
        self.now = 0.0
        self.cluster = a_cluster(a_node_facts(f"n{number}") for number in range(nodes))
        self.queue = SchedulingQueue(
            PrioritySort(), {}, {"Everything": self.plugin.events_to_register()}
        )
        self.heard = Heard()
        self.transport = Busy(*[answer(200, {"metadata": {}})] * 50)
        self.metrics = SchedulerMetrics()
        plugins = (*more, self.plugin)
        self.scheduler = Scheduler(
            {"default-scheduler": Profile("default-scheduler", plugins)},
            self.queue,
            self.cluster,
            PodStatusReporter(
                Client(self.transport), self.heard, lambda: datetime(2026, 1, 1, tzinfo=UTC)
            ),
            self.metrics,
            lambda: self.now,
        )

    async def attempt(self, pod: PodInfo | None = None) -> None:
        """Add a pod, and let the scheduler try it once, with all that follows."""
        if pod is not None:
            self.queue.add(pod, self.now)
        queued = self.queue.pop(self.now)
        assert queued is not None
        self.scheduler.schedule(queued)
        await settle()

    def sub_queue(self, name: str = "pod") -> SubQueue | None:
        found = [queued.sub_queue for queued in self.queue.pods() if queued.pod.name == name]
        return found[0] if found else None

    def events(self) -> list[tuple[str, str]]:
        return [(reason, note) for _, _, reason, _, note in self.heard.events]

    def conditions(self) -> list[tuple[str, str]]:
        """Reason and message of every condition that was written."""
        return [
            (condition["reason"], condition["message"])
            for request in self.transport.requests
            for condition in request.body["status"].get("conditions", ())
        ]

    def attempts(self, result: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "scheduler_schedule_attempts_total",
            {"result": result, "profile": "default-scheduler"},
        )
        return value or 0.0


def played(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_a_pod_that_fits_is_bound() -> None:
    async def story() -> None:
        stage = Stage()
        await stage.attempt(a_pod_info())

        assert stage.plugin.said == ["filter", "reserve", "pre_bind", "bind"]
        assert stage.sub_queue() is None
        assert stage.cluster.is_assumed("uid-default-pod")
        assert stage.events() == [("Scheduled", "Successfully assigned default/pod to n0")]
        assert stage.attempts("scheduled") == 1

    played(story)


def test_bindings_run_beside_the_next_decision() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.open.clear()
        await stage.attempt(a_pod_info("a"))
        await stage.attempt(a_pod_info("b"))
        assert stage.sub_queue("a") is stage.sub_queue("b") is SubQueue.IN_FLIGHT
        assert stage.plugin.said == ["filter", "reserve"] * 2

        stage.plugin.open.set()
        await settle()

        assert stage.plugin.said.count("bind") == 2
        assert stage.cluster.assumed_count == 2

    played(story)


def test_concurrent_bindings_are_limited() -> None:
    async def story() -> None:
        stage = Stage(nodes=20)
        stage.plugin.open.clear()
        for number in range(MAX_BINDINGS + 50):
            stage.queue.add(a_pod_info(f"pod-{number}"), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle(MAX_BINDINGS * 5)
        assert stage.cluster.assumed_count == MAX_BINDINGS, (
            "the others keep their place in the queue"
        )

        stage.plugin.open.set()
        await settle(MAX_BINDINGS * 20)

        assert stage.plugin.said.count("bind") == MAX_BINDINGS + 50
        running.cancel()
        await asyncio.wait((running,))

    played(story)


@pytest.mark.parametrize(
    ("seconds", "in_a_row"),
    [(0.0, ATTEMPTS_IN_A_ROW), (SECONDS_IN_A_ROW / 2, 2), (SECONDS_IN_A_ROW, 1)],
    ids=["quick", "slower", "slow"],
)
def test_a_few_attempts_run_in_a_row(seconds: float, in_a_row: int) -> None:
    async def story() -> None:
        stage = Stage(nodes=20)
        rows = [0]

        def attempted() -> None:
            rows[-1] += 1
            stage.now += seconds

        stage.plugin.meanwhile["reserve"] = attempted
        for number in range(2 * in_a_row + 1):
            stage.queue.add(a_pod_info(f"pod-{number}"), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        for _ in range(3):
            await asyncio.sleep(0)
            rows.append(0)
        assert rows[:3] == [in_a_row, in_a_row, 1]

        running.cancel()
        await asyncio.wait((running,))

    played(story)


def test_after_a_failed_attempt_room_is_made_before_the_next_one() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full"), "post_filter": unschedulable()}
        for name in ("first", "second"):
            stage.queue.add(a_pod_info(name), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle()

        assert stage.plugin.said == ["filter", "post_filter"] * 2
        running.cancel()
        await asyncio.wait((running,))

    played(story)


def test_pods_that_wait_for_something_do_not_keep_others_from_being_bound() -> None:
    async def story() -> None:
        stage = Stage(nodes=200)
        stage.plugin.rests = True
        stage.plugin.open.clear()
        for number in range(1000):
            stage.queue.add(a_pod_info(f"pod-{number}"), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle(6000)
        assert stage.cluster.assumed_count == 1000, "all of them wait"

        stage.plugin.rests = False
        stage.plugin.open.set()
        await settle(6000)

        assert stage.plugin.said.count("bind") == 1000
        running.cancel()
        await asyncio.wait((running,))

    played(story)


# --- no node ---


def test_pods_that_fail_do_not_keep_the_queue_waiting() -> None:
    """What must be said about them is written beside the next decisions, only so much at a time."""

    async def story() -> None:
        stage = Stage()
        stage.transport.door.clear()
        stage.plugin.answers = {"filter": unschedulable("full"), "post_filter": unschedulable()}
        for number in range(40):
            stage.queue.add(a_pod_info(f"pod-{number}"), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle(400)
        assert stage.attempts("unschedulable") == 40
        assert stage.sub_queue("pod-0") is SubQueue.IN_FLIGHT, "not tried again before all is said"

        stage.transport.door.set()
        await settle(400)

        assert stage.queue.lengths() == {SubQueue.UNSCHEDULABLE: 40}
        assert len(stage.conditions()) == 40
        assert stage.transport.most == MAX_REPORTS
        running.cancel()
        await asyncio.wait((running,))

    played(story)


def test_room_is_made_for_one_pod_after_the_other() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full"), "post_filter": unschedulable()}
        stage.plugin.open.clear()
        for name in ("a", "b", "gone"):
            stage.queue.add(a_pod_info(name), 0.0)
            queued = stage.queue.pop(0.0)
            assert queued is not None
            stage.scheduler.schedule(queued)
        await settle()
        assert stage.plugin.making_room == 1
        stage.queue.delete("uid-default-gone")

        stage.plugin.open.set()
        await settle(100)

        assert stage.plugin.said.count("post_filter") == 2, "nothing is done for a pod that is gone"
        assert stage.sub_queue("a") is stage.sub_queue("b") is SubQueue.UNSCHEDULABLE

    played(story)


def test_room_that_was_made_is_kept_from_then_on() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full")}
        stage.plugin.nominated = "n0"
        pod = a_pod_info("important", priority=10)
        await stage.attempt(pod)
        assert stage.cluster.nominations.before(a_pod_info("lesser"), "n0") == [pod]

        stage.plugin.answers = {}
        stage.queue.on_cluster_event(NODE_ADDED, None, None, 50.0)
        stage.now = 50.0
        await stage.attempt()

        assert not stage.cluster.nominations, "it is counted where it is now"

    played(story)


def test_a_pod_that_fits_nowhere_waits_for_an_event() -> None:
    async def story() -> None:
        stage = Stage(2)
        stage.plugin.answers = {
            "filter": unschedulable("too small"),
            "post_filter": unschedulable("nothing to evict"),
        }
        await stage.attempt(a_pod_info())

        message = "0/2 nodes are available: 2 too small. nothing to evict"
        assert stage.events() == [("FailedScheduling", message)]
        assert stage.conditions() == [("Unschedulable", message)]
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE
        assert stage.attempts("unschedulable") == 1

    played(story)


def test_a_nomination_is_written() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full")}
        stage.plugin.nominated = "n0"
        await stage.attempt(a_pod_info())

        assert stage.transport.requests[-1].body["status"]["nominatedNodeName"] == "n0"
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE

    played(story)


def test_without_nodes_every_new_node_helps() -> None:
    async def story() -> None:
        stage = Stage(nodes=0)
        await stage.attempt(a_pod_info())

        assert stage.conditions() == [("Unschedulable", "no nodes available to schedule pods")]
        assert "post_filter" not in stage.plugin.said
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE
        stage.queue.on_cluster_event(NODE_ADDED, None, None, 50.0)
        assert stage.sub_queue() is SubQueue.ACTIVE

    played(story)


def test_events_while_room_is_made_are_not_lost() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {
            "filter": unschedulable("full"),
            "post_filter": unschedulable(),
        }
        stage.plugin.meanwhile["post_filter"] = lambda: stage.queue.on_cluster_event(
            NODE_ADDED, None, None, 0.0
        )
        await stage.attempt(a_pod_info())

        assert stage.sub_queue() is SubQueue.BACKOFF

    played(story)


def test_a_pod_deleted_while_room_is_made_does_not_come_back() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full"), "post_filter": unschedulable()}
        stage.plugin.meanwhile["post_filter"] = lambda: stage.queue.delete("uid-default-pod")
        await stage.attempt(a_pod_info())

        assert stage.sub_queue() is None
        assert stage.queue.pop(1000.0) is None

    played(story)


# --- errors ---


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("filter", 'running "Everything" filter plugin: oh'),
        ("reserve", "oh"),
        ("pre_bind", 'running PreBind plugin "Everything": oh'),
        ("bind", "oh"),
    ],
)
def test_an_error_is_shown_and_tried_again_after_a_while(point: str, message: str) -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {point: failed(ValueError("oh"))}
        await stage.attempt(a_pod_info())

        assert stage.events() == [("FailedScheduling", message)]
        assert stage.conditions() == [("SchedulerError", message)]
        assert stage.sub_queue() is SubQueue.BACKOFF
        assert stage.queue.next_due() == 1.0
        assert stage.cluster.pods == {}
        assert ("unreserve" in stage.plugin.said) is (point != "filter")
        assert (stage.attempts("scheduled"), stage.attempts("error")) == (0, 1)

        stage.plugin.answers = {}
        stage.now = 1.0
        stage.queue.flush(stage.now)
        await stage.attempt()
        assert stage.sub_queue() is None
        assert (stage.attempts("scheduled"), stage.attempts("error")) == (1, 1)

    played(story)


def test_an_attempt_is_counted_when_its_binding_has_ended_and_with_the_time_that_took() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.open.clear()
        await stage.attempt(a_pod_info())
        assert stage.attempts("scheduled") == 0

        stage.now = 7.0
        stage.plugin.open.set()
        await settle()

        labels = {"result": "scheduled", "profile": "default-scheduler"}
        name = "scheduler_scheduling_attempt_duration_seconds_sum"
        assert stage.attempts("scheduled") == 1
        assert stage.metrics.registry.get_sample_value(name, labels) == 7.0

    played(story)


def test_a_pod_that_goes_away_while_it_is_bound_counts_as_an_error() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.open.clear()
        await stage.attempt(a_pod_info())
        stage.queue.delete("uid-default-pod")

        assert stage.scheduler.bindings.stop("uid-default-pod")
        await settle()

        assert (stage.attempts("scheduled"), stage.attempts("error")) == (0, 1)

    played(story)


# --- what is under way ---


def test_a_pod_that_waits_for_something_under_way_is_woken_and_not_told() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": pending("in a moment")}
        await stage.attempt(a_pod_info())

        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE
        assert (stage.events(), stage.conditions()) == ([], [])
        assert stage.plugin.making_room == 0
        assert "post_filter" not in stage.plugin.said

        stage.plugin.answers = {}
        stage.queue.on_cluster_event(NODE_ADDED, None, None, stage.now)
        assert stage.sub_queue() is SubQueue.ACTIVE, "without backoff"
        await stage.attempt()
        assert stage.events() == [("Scheduled", "Successfully assigned default/pod to n0")]

    played(story)


def test_a_pod_pending_beyond_the_report_delay_gets_a_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failure_handler, "PENDING_REPORT_DELAY_SECONDS", 0.0)

    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": pending("in a moment")}
        await stage.attempt(a_pod_info())

        message = "0/1 nodes are available: 1 in a moment."
        assert stage.events() == [("FailedScheduling", message)]
        assert stage.conditions() == [("Unschedulable", message)]
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE

    played(story)


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
def test_a_plugin_that_raises_while_binding_does_not_lose_the_pod(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {point: RuntimeError("our mistake")}
        await stage.attempt(a_pod_info())

        assert stage.sub_queue() is SubQueue.BACKOFF
        assert stage.cluster.pods == {}
        assert stage.plugin.said[-1] == "unreserve"

    played(story)
    assert "our mistake" in caplog.text


@pytest.mark.parametrize("point", ["filter", "reserve", "post_filter"])
def test_a_plugin_that_raises_while_deciding_does_not_lose_the_pod(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {point: RuntimeError("our mistake")}
        if point == "post_filter":
            stage.plugin.answers["filter"] = unschedulable("full")
        stage.queue.add(a_pod_info(), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle()

        assert stage.sub_queue() is SubQueue.BACKOFF
        assert stage.cluster.pods == {}
        running.cancel()
        await asyncio.wait((running,))

    played(story)
    assert "our mistake" in caplog.text


def test_an_error_takes_a_nomination_back() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"bind": failed(ValueError("oh"))}
        await stage.attempt(a_pod_info(status={"nominatedNodeName": "n0"}))

        assert stage.transport.requests[-1].body["status"]["nominatedNodeName"] is None

    played(story)


# --- pods that need no attempt ---


def test_a_pod_that_goes_away_is_left_alone() -> None:
    async def story() -> None:
        stage = Stage()
        await stage.attempt(a_pod_info(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))

        assert stage.events() == [("FailedScheduling", "skip schedule deleting pod: default/pod")]
        assert stage.conditions() == []
        assert stage.plugin.said == []
        assert stage.sub_queue() is None

    played(story)


def test_a_pod_that_has_a_place_is_left_alone() -> None:
    async def story() -> None:
        stage = Stage()
        stage.cluster.set_pod(a_pod_info(node="n0"))
        await stage.attempt(a_pod_info())

        assert stage.plugin.said == []
        assert stage.sub_queue() is None

    played(story)


# --- pods that change while they are bound ---


def test_a_pod_deleted_while_it_is_bound_does_not_come_back() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.open.clear()
        stage.plugin.answers = {"bind": failed(ValueError("gone"))}
        await stage.attempt(a_pod_info())
        stage.queue.delete("uid-default-pod")
        stage.cluster.remove_pod("uid-default-pod")

        stage.plugin.open.set()
        await settle()

        assert stage.sub_queue() is None
        assert stage.plugin.said[-1] == "unreserve"
        assert stage.cluster.pods == {}

    played(story)


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "not-seen-yet"])
def test_a_pod_that_another_scheduler_bound_is_theirs(is_seen: bool) -> None:
    async def story() -> None:
        stage = Stage(2)
        stage.plugin.open.clear()
        error = ValueError("conflict") if is_seen else BoundElsewhereError("n1")
        stage.plugin.answers = {"bind": failed(error)}
        await stage.attempt(a_pod_info())
        if is_seen:
            stage.cluster.set_pod(a_pod_info(node="n1"))

        stage.plugin.open.set()
        await settle()

        assert stage.conditions() == [], "the pod is scheduled, whatever we think"
        assert stage.events() == []
        assert stage.sub_queue() is None
        assert stage.plugin.said[-1] == "unreserve"

    played(story)


def test_nothing_is_said_about_a_pod_that_may_be_bound() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"bind": failed(UnknownBindingError("no answer"))}
        await stage.attempt(a_pod_info())
        await settle()

        assert stage.conditions() == []
        assert stage.plugin.said[-1] == "unreserve"
        assert stage.sub_queue() is not None, "it is tried again unless it turns out to be bound"

    played(story)


# --- the loop ---


def test_the_scheduling_loop_sleeps_until_a_pod_is_added() -> None:
    async def story() -> None:
        stage = Stage()
        running = asyncio.create_task(stage.scheduler.run())
        await settle()
        stage.queue.add(a_pod_info(), 0.0)
        await settle()

        assert stage.sub_queue() is None
        running.cancel()
        await asyncio.wait((running,))

    played(story)


def test_the_loop_ends_bindings_without_undoing_them() -> None:
    """What was written stays: the next scheduler goes on from there."""

    async def story() -> None:
        stage = Stage()
        stage.plugin.open.clear()
        stage.queue.add(a_pod_info(), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle()

        running.cancel()
        await asyncio.wait((running,))

        assert stage.plugin.said == ["filter", "reserve"]
        assert len(asyncio.all_tasks()) == 1

    played(story)


def test_pods_that_nothing_woke_are_tried_again_by_the_loop() -> None:
    async def story() -> None:
        stage = Stage()
        stage.plugin.answers = {"filter": unschedulable("full"), "post_filter": unschedulable()}
        stage.queue.add(a_pod_info(), 0.0)
        running = asyncio.create_task(stage.scheduler.run())
        await settle()
        assert stage.sub_queue() is SubQueue.UNSCHEDULABLE

        stage.plugin.answers = {}
        stage.now = 331.0
        stage.scheduler.wake()
        await settle()

        assert stage.sub_queue() is None
        running.cancel()
        await asyncio.wait((running,))

    played(story)


# --- DefaultBinder ---

BOUND = {"metadata": {"name": "pod", "uid": "uid-default-pod"}, "spec": {"nodeName": "n0"}}
CONFLICT = answer(409, status(409, "Conflict"))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([answer(201)], None, id="bound"),
        pytest.param([CONFLICT, answer(200, BOUND)], None, id="an-answer-got-lost"),
        pytest.param(
            [answer(500)] * 10 + [answer(200, BOUND)], None, id="the-server-failed-but-did-it"
        ),
        pytest.param(
            [CONFLICT, answer(200, BOUND | {"spec": {"nodeName": "n1"}})],
            BoundElsewhereError,
            id="another-scheduler-was-quicker",
        ),
        pytest.param(
            [CONFLICT, answer(200, BOUND | {"spec": {}})], ApiStatusError, id="another-conflict"
        ),
        pytest.param(
            [CONFLICT, answer(200, BOUND | {"metadata": {"uid": "another"}})],
            ApiStatusError,
            id="another-pod-of-this-name",
        ),
        pytest.param([CONFLICT, answer(404)], ApiStatusError, id="the-pod-is-gone"),
        pytest.param(
            [CONFLICT] + [answer(500)] * 10, UnknownBindingError, id="the-server-does-not-say"
        ),
        pytest.param([answer(404)], ApiStatusError, id="it-was-gone-before"),
    ],
)
def test_default_binder(answers: list[Any], expected: type[Exception] | None) -> None:
    client, transport, _ = scripted(*answers)

    found = asyncio.run(DefaultBinder(client).bind(CycleState(), a_pod_info(), "n0"))

    assert transport.answers == []
    if expected is None:
        assert found.is_success
    else:
        assert isinstance(found.error, expected)
    assert transport.requests[0].path == "/api/v1/namespaces/default/pods/pod/binding"
    assert transport.requests[0].body["metadata"]["uid"] == "uid-default-pod"
    assert transport.requests[0].body["target"]["name"] == "n0"
    # Servers read it in few steps, which depends on the order of its fields.
    assert plain_binding(msgspec.json.encode(transport.requests[0].body)) is not None
