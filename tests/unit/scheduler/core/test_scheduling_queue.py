from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from allot.backoff import Backoff
from allot.scheduler.core.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.backoff import POD_BACKOFF
from allot.scheduler.framework.events import (
    NODE,
    RESOURCE_CLAIM,
    WAITING_POD,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
)
from allot.scheduler.framework.plugins import PreEnqueuePlugin
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import a_pod_info

NODE_ADDED = ClusterEvent(NODE, Action.ADD)
NODE_RELABELLED = ClusterEvent(NODE, Action.UPDATE_NODE_LABEL)
CLAIM_ADDED = ClusterEvent(RESOURCE_CLAIM, Action.ADD)
POD_RELABELLED = ClusterEvent(WAITING_POD, Action.UPDATE_POD_LABEL)


class Door(PreEnqueuePlugin):
    """A scheduling gate that a test opens."""

    name = "Door"

    def __init__(self) -> None:
        self.closed: set[str] = set()

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unresolvable("closed") if pod.name in self.closed else SUCCESS

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (EventRegistration(CLAIM_ADDED),)


def only_if_it_says_so(pod: PodInfo, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new == "yes" else Hint.SKIP


class Desk:
    """A queue and what came to its places."""

    def __init__(self, backoff: Backoff = POD_BACKOFF) -> None:
        self.door = Door()
        self.seen: list[tuple[str, str]] = []
        self.queue = SchedulingQueue(
            PrioritySort(),
            {"default-scheduler": [SchedulingGates(), self.door]},
            {
                "SchedulingGates": SchedulingGates().events_to_register(),
                "Door": self.door.events_to_register(),
                "Always": [EventRegistration(NODE_ADDED)],
                "Picky": [
                    EventRegistration(NODE_ADDED, only_if_it_says_so),
                    EventRegistration(POD_RELABELLED, only_if_relabelled_wide),
                ],
                "Deaf": [],
            },
            backoff,
            lambda sub_queue, event: self.seen.append((sub_queue.value, event)),
        )

    def add(self, *names: str, now: float = 0.0, **fields: Any) -> None:
        for name in names:
            self.queue.add(a_pod_info(name, **fields), now)

    def popped(self, now: float = 0.0) -> list[str]:
        """All that can be popped, in order. They are in flight afterwards."""
        return [queued.pod.name for queued in self.all_popped(now)]

    def all_popped(self, now: float = 0.0) -> list[QueuedPodInfo]:
        found = []
        while (queued := self.queue.pop(now)) is not None:
            found.append(queued)
        return found

    def pop(self, now: float = 0.0) -> QueuedPodInfo:
        queued = self.queue.pop(now)
        assert queued is not None
        return queued

    def rejected(self, by: Sequence[str] = ("Always",), now: float = 0.0) -> QueuedPodInfo:
        """A pod that was tried once and rejected."""
        self.add("pod", now=now)
        queued = self.pop(now)
        self.queue.requeue(queued, now, rejected_by=by)
        return queued

    def where(self, name: str = "pod") -> SubQueue | None:
        found = [queued.sub_queue for queued in self.queue.pods() if queued.pod.name == name]
        return found[0] if found else None


def only_if_relabelled_wide(pod: PodInfo, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new.labels.get("size") == "wide" else Hint.SKIP


# --- order ---


def test_important_pods_come_first_then_those_that_wait_longest() -> None:
    desk = Desk()
    desk.add("second", now=1.0)
    desk.add("third", now=2.0)
    desk.add("first", now=3.0, priority=10)

    assert desk.popped(4.0) == ["first", "second", "third"]


def test_pods_that_came_at_once_keep_their_order() -> None:
    desk = Desk()
    desk.add("a", "b", "c")

    assert desk.popped() == ["a", "b", "c"]


def test_a_requeued_pod_is_behind_those_that_waited() -> None:
    desk = Desk(Backoff(1.0, 0.0))
    desk.add("a", "b", now=0.0)
    again = desk.pop(1.0)
    desk.queue.requeue(again, 1.0)

    assert desk.popped(1.0) == ["b", "a"]


def test_an_update_can_change_the_order() -> None:
    desk = Desk()
    desk.add("a", "b")
    desk.queue.update(a_pod_info("b", priority=5), 1.0)

    assert desk.popped() == ["b", "a"]


def test_adding_twice_is_an_update() -> None:
    desk = Desk()
    desk.add("a")
    desk.queue.add(a_pod_info("a", labels={"v": "2"}), 1.0)

    (queued,) = desk.all_popped()

    assert queued.pod.labels == {"v": "2"}


# --- pods that name objects ---


class Locked(PreEnqueuePlugin):
    """Opens for pods whose key, an object that they name by a label, is there."""

    name = "Locked"
    gates_on_referenced_objects = True

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.asked = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.asked += 1
        return SUCCESS if pod.labels.get("key") in self.keys else unresolvable("locked")

    def referenced_objects(self, pod: PodInfo) -> list[str]:
        return [pod.labels["key"]] if "key" in pod.labels else []

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (
            EventRegistration(CLAIM_ADDED, None, lambda _, new: new != "for all pods"),
            EventRegistration(NODE_ADDED),
        )


def a_locked_queue(pods: int) -> tuple[Locked, SchedulingQueue]:
    plugin = Locked()
    queue = SchedulingQueue(
        PrioritySort(),
        {"default-scheduler": [plugin]},
        {"Locked": plugin.events_to_register()},
    )
    for number in range(pods):
        queue.add(a_pod_info(f"pod-{number}", labels={"key": f"key-{number}"}), 0.0)
    plugin.asked = 0
    return plugin, queue


def test_an_event_about_an_object_is_news_only_to_pods_that_name_it() -> None:
    plugin, queue = a_locked_queue(1000)
    plugin.keys.add("key-7")
    queue.on_cluster_event(CLAIM_ADDED, None, "new", 1.0, "key-7")

    assert [queued.pod.name for queued in queue.pods() if queued.sub_queue is SubQueue.ACTIVE] == [
        "pod-7"
    ]
    assert queue.checks == 1
    assert plugin.asked == 1


@pytest.mark.parametrize("about", ["key-none", None])
def test_other_events_do_not_open_such_gates(about: str | None) -> None:
    plugin, queue = a_locked_queue(10)
    plugin.keys.update(f"key-{number}" for number in range(10))

    queue.on_cluster_event(CLAIM_ADDED, None, "for all pods", 1.0, about)
    queue.on_cluster_event(NODE_ADDED, None, "new", 1.0)

    assert queue.checks == 0
    assert queue.lengths() == {SubQueue.GATED: 10}


def test_a_gated_pod_is_found_by_what_it_names_now() -> None:
    plugin, queue = a_locked_queue(1)
    queue.update(a_pod_info("pod-0", labels={"key": "another"}), 1.0)
    plugin.keys.add("another")

    queue.on_cluster_event(CLAIM_ADDED, None, "new", 1.0, "key-0")
    assert queue.lengths() == {SubQueue.GATED: 1}
    queue.on_cluster_event(CLAIM_ADDED, None, "new", 1.0, "another")

    assert queue.lengths() == {SubQueue.ACTIVE: 1}


@pytest.mark.parametrize(("new", "woken"), [("new", 1), ("for all pods", 3)])
def test_rejected_pods_hear_of_objects_that_they_name_or_that_matter_to_all(
    new: str, woken: int
) -> None:
    plugin, queue = a_locked_queue(0)
    plugin.keys.update(f"key-{number}" for number in range(3))
    for number in range(3):
        queue.add(a_pod_info(f"pod-{number}", labels={"key": f"key-{number}"}), 0.0)
    while (queued := queue.pop(0.0)) is not None:
        queue.requeue(queued, 0.0, rejected_by=["Locked"])

    queue.on_cluster_event(CLAIM_ADDED, None, new, 100.0, "key-1")

    assert queue.checks == woken
    assert queue.lengths()[SubQueue.ACTIVE] == woken


def test_a_deleted_pod_is_not_found_by_what_it_named() -> None:
    plugin, queue = a_locked_queue(1)
    plugin.keys.add("key-0")
    queue.delete("uid-default-pod-0")

    queue.on_cluster_event(CLAIM_ADDED, None, "new", 1.0, "key-0")

    assert queue.lengths() == {}


def test_what_happens_is_noted_once_however_many_pods_are_being_tried() -> None:
    desk = Desk()
    desk.add(*(f"pod-{number}" for number in range(100)))
    early = desk.pop()
    desk.queue.on_cluster_event(NODE_ADDED, None, "yes", 0.0)
    others = desk.all_popped()
    desk.queue.on_cluster_event(NODE_ADDED, None, "no", 0.0)
    assert len(desk.queue._in_flight_events) == 2

    desk.queue.requeue(early, 0.0, rejected_by=["Picky"])
    assert desk.where("pod-0") is SubQueue.BACKOFF, "it heard both"
    for queued in others:
        desk.queue.requeue(queued, 0.0, rejected_by=["Picky"])

    assert desk.queue.lengths() == {SubQueue.BACKOFF: 1, SubQueue.UNSCHEDULABLE: 99}
    assert len(desk.queue._in_flight_events) == 0


# --- gates ---


def test_gated_pods_wait_in_silence() -> None:
    desk = Desk()
    desk.add("pod", schedulingGates=[{"name": "a"}, {"name": "b"}])

    assert desk.popped() == []
    assert desk.where() is SubQueue.GATED
    (queued,) = desk.queue.pods()
    assert queued.gate.message == "waiting for scheduling gates: [a b]"
    assert queued.gate.plugin == "SchedulingGates"


def test_a_gate_that_is_gone_lets_the_pod_in() -> None:
    desk = Desk()
    desk.add("pod", schedulingGates=[{"name": "a"}, {"name": "b"}])

    desk.queue.update(a_pod_info("pod", schedulingGates=[{"name": "b"}]), 1.0)
    assert desk.where() is SubQueue.GATED
    desk.queue.update(a_pod_info("pod"), 2.0)

    assert desk.popped() == ["pod"]
    assert desk.seen == [("gated", "PodAdd"), ("active", "PodUpdate")]


@pytest.mark.parametrize(
    ("event", "opened", "sub_queue"),
    [
        pytest.param(CLAIM_ADDED, True, SubQueue.ACTIVE, id="its-event-and-open"),
        pytest.param(CLAIM_ADDED, False, SubQueue.GATED, id="its-event-but-closed"),
        pytest.param(NODE_ADDED, True, SubQueue.GATED, id="an-event-of-others"),
    ],
)
def test_only_events_of_the_gate_open_it(
    event: ClusterEvent, opened: bool, sub_queue: SubQueue
) -> None:
    desk = Desk()
    desk.door.closed = {"pod"}
    desk.add("pod")
    if opened:
        desk.door.closed = set()

    desk.queue.on_cluster_event(event, None, "object", 1.0)

    assert desk.where() is sub_queue


def test_a_gate_that_closes_later_keeps_a_woken_pod_out() -> None:
    desk = Desk()
    desk.rejected()
    desk.door.closed = {"pod"}

    desk.queue.on_cluster_event(NODE_ADDED, None, None, 20.0)

    assert desk.where() is SubQueue.GATED


def test_a_gate_that_closes_during_backoff_does_not_hide_the_pods_behind() -> None:
    desk = Desk()
    desk.add("a", "b")
    for queued in desk.all_popped():
        desk.queue.requeue(queued, 0.0, rejected_by=["Always"])
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.1)
    desk.door.closed = {"a"}

    assert desk.popped(0.2) == ["b"]
    assert desk.where("a") is SubQueue.GATED


# --- backoff ---


def test_backoff_doubles_up_to_its_limit() -> None:
    assert [POD_BACKOFF.seconds(n) for n in range(7)] == [0, 1, 2, 4, 8, 10, 10]


def test_errors_wait_1_2_4_8_10_seconds() -> None:
    desk = Desk()
    desk.add("pod")
    now, waits = 0.0, []
    for _ in range(6):
        desk.queue.requeue(desk.pop(now), now)
        assert desk.where() is SubQueue.BACKOFF
        due = desk.queue.next_due()
        assert due is not None
        desk.queue.flush(due - 0.001)
        assert desk.queue.pop(due) is None, "errors are not popped early"
        desk.queue.flush(due)
        waits.append(due - now)
        now = due

    assert waits == [1, 2, 4, 8, 10, 10]


def test_without_a_limit_there_is_no_backoff() -> None:
    desk = Desk(Backoff(1, 0))
    desk.add("pod")
    desk.queue.requeue(desk.pop(), 0.0)

    assert desk.popped() == ["pod"]


def test_errors_are_counted_since_the_last_attempt_without_one() -> None:
    desk = Desk()
    desk.add("pod")
    for _ in range(3):
        desk.queue.requeue(desk.pop(), 0.0)
        desk.queue.flush(100.0)
    desk.queue.requeue(desk.pop(), 100.0, rejected_by=["Always"])
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 200.0)

    desk.queue.requeue(desk.pop(200.0), 200.0)

    assert desk.queue.next_due() == 201.0


def test_rejections_count_for_their_own_backoff() -> None:
    desk = Desk()
    queued = desk.rejected()
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 100.0)
    desk.queue.requeue(desk.pop(100.0), 100.0, rejected_by=["Always"])
    desk.add("busy", priority=1, now=100.0)
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 100.5)

    desk.queue.flush(101.9)
    assert desk.where() is SubQueue.BACKOFF
    desk.queue.flush(102.0)

    assert desk.where() is SubQueue.ACTIVE
    assert queued.rejections == 2


def test_with_nothing_else_to_do_backoff_is_cut_short() -> None:
    desk = Desk()
    desk.rejected()
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.1)
    assert desk.where() is SubQueue.BACKOFF

    assert desk.queue.next_due() == 0.0
    assert desk.popped(0.2) == ["pod"]


def test_with_something_to_do_it_is_not() -> None:
    desk = Desk()
    desk.rejected()
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.1)
    desk.add("other")

    assert desk.pop(0.2).pod.name == "other"


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(0.5, id="both-in-backoff"),
        pytest.param(1.4, id="between-the-two"),
        pytest.param(2.5, id="both-over"),
    ],
)
def test_backoff_that_ends_in_the_same_second_leaves_the_order_to_priority(now: float) -> None:
    desk = Desk()
    desk.add("low", now=0.1)
    desk.queue.requeue(desk.pop(0.1), 0.1, rejected_by=["Always"])
    desk.add("high", now=0.45, priority=10)
    desk.queue.requeue(desk.pop(0.45), 0.45, rejected_by=["Always"])

    desk.queue.on_cluster_event(NODE_ADDED, None, None, now)

    assert desk.popped(now) == ["high", "low"]


def test_backoff_that_ends_in_an_earlier_second_comes_first() -> None:
    desk = Desk()
    desk.add("low", now=0.1)
    desk.queue.requeue(desk.pop(0.1), 0.1, rejected_by=["Always"])
    desk.add("high", now=1.1, priority=10)
    desk.queue.requeue(desk.pop(1.1), 1.1, rejected_by=["Always"])

    desk.queue.on_cluster_event(NODE_ADDED, None, None, 1.2)

    assert desk.popped(1.2) == ["low", "high"]


def test_backoff_that_passed_while_unschedulable_is_not_served_again() -> None:
    desk = Desk()
    desk.rejected()

    desk.queue.on_cluster_event(NODE_ADDED, None, None, 1.0)

    assert desk.where() is SubQueue.ACTIVE


def test_nothing_is_due_where_only_events_help() -> None:
    desk = Desk()
    assert desk.queue.next_due() is None
    desk.rejected()
    assert desk.queue.next_due() is None
    assert desk.queue.pop(1000.0) is None


# --- hints ---


@pytest.mark.parametrize(
    ("rejected_by", "event", "new", "wakes"),
    [
        pytest.param(["Always"], NODE_ADDED, "no", True, id="no-hint-means-always"),
        pytest.param(["Always"], NODE_RELABELLED, "no", False, id="another-action"),
        pytest.param(["Always"], CLAIM_ADDED, "no", False, id="another-object"),
        pytest.param(["Picky"], NODE_ADDED, "yes", True, id="hint-says-queue"),
        pytest.param(["Picky"], NODE_ADDED, "no", False, id="hint-says-skip"),
        pytest.param(["Picky", "Always"], NODE_ADDED, "no", True, id="one-of-several"),
        pytest.param(["Deaf"], NODE_ADDED, "yes", False, id="nothing-registered"),
        pytest.param(["Door"], NODE_ADDED, "yes", False, id="rejected-by-others-only"),
        pytest.param(["Missing"], NODE_ADDED, "yes", False, id="unknown-plugin"),
    ],
)
def test_hints(rejected_by: list[str], event: ClusterEvent, new: str, wakes: bool) -> None:
    desk = Desk()
    desk.rejected(rejected_by)

    desk.queue.on_cluster_event(event, None, new, 50.0)

    assert desk.where() is (SubQueue.ACTIVE if wakes else SubQueue.UNSCHEDULABLE)


def test_a_plugin_that_only_waits_lets_its_event_skip_the_backoff() -> None:
    desk = Desk()
    desk.add("pod")
    desk.queue.requeue(desk.pop(), 0.0, pending_on=["Always"])

    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.1)

    assert desk.where() is SubQueue.ACTIVE


# --- events during an attempt ---


def test_events_during_an_attempt_are_not_lost() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.on_cluster_event(NODE_ADDED, None, "yes", 0.0)

    desk.queue.requeue(queued, 0.0, rejected_by=["Picky"])

    assert desk.where() is SubQueue.BACKOFF


def test_hints_are_asked_about_events_during_an_attempt() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.on_cluster_event(NODE_ADDED, None, "no", 0.0)
    desk.queue.on_cluster_event(CLAIM_ADDED, None, "yes", 0.0)

    desk.queue.requeue(queued, 0.0, rejected_by=["Picky"])

    assert desk.where() is SubQueue.UNSCHEDULABLE


def test_events_before_an_attempt_do_not_count() -> None:
    desk = Desk()
    desk.add("pod")
    desk.queue.on_cluster_event(NODE_ADDED, None, "yes", 0.0)

    desk.queue.requeue(desk.pop(), 0.0, rejected_by=["Picky"])

    assert desk.where() is SubQueue.UNSCHEDULABLE


def test_events_are_replayed_once() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.on_cluster_event(NODE_ADDED, None, "yes", 0.0)
    desk.queue.requeue(queued, 0.0, rejected_by=["Picky"])
    again = desk.pop(0.1)

    desk.queue.requeue(again, 0.1, rejected_by=["Picky"])

    assert desk.where() is SubQueue.UNSCHEDULABLE


def test_an_update_during_an_attempt_is_an_event_like_others() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.update(a_pod_info("pod", labels={"size": "wide"}), 0.0, lambda *_: POD_RELABELLED)

    desk.queue.requeue(queued, 0.0, rejected_by=["Picky"])

    assert desk.where() is SubQueue.BACKOFF
    assert queued.pod.labels == {"size": "wide"}


# --- the end of an attempt ---


def test_a_pod_that_was_bound_is_gone() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.end_in_flight(queued)
    assert desk.where() is SubQueue.IN_FLIGHT

    desk.queue.done(queued)

    assert queued.pod.uid not in desk.queue
    assert desk.queue.pop(1000.0) is None


def test_a_binding_that_fails_brings_the_pod_back() -> None:
    desk = Desk()
    desk.add("pod")
    queued = desk.pop()
    desk.queue.end_in_flight(queued)

    desk.queue.requeue(queued, 5.0)

    assert desk.where() is SubQueue.BACKOFF
    assert desk.queue.next_due() == 6.0


def test_attempts_are_counted() -> None:
    desk = Desk(Backoff(1, 0))
    desk.add("pod")
    for _ in range(3):
        desk.queue.requeue(desk.pop(), 0.0)

    assert desk.pop().attempts == 4


# --- updates and deletes, wherever the pod is ---


def in_active(desk: Desk) -> None:
    desk.add("pod")


def in_gated(desk: Desk) -> None:
    desk.door.closed = {"pod"}
    desk.add("pod")


def in_flight(desk: Desk) -> None:
    desk.add("pod")
    desk.pop()


def in_binding(desk: Desk) -> None:
    desk.add("pod")
    desk.queue.end_in_flight(desk.pop())


def in_unschedulable(desk: Desk) -> None:
    desk.rejected(["Picky"])


def in_backoff(desk: Desk) -> None:
    desk.rejected()
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.0)


def in_error_backoff(desk: Desk) -> None:
    desk.add("pod")
    desk.queue.requeue(desk.pop(), 0.0)


PLACES = [
    in_active, in_gated, in_flight, in_binding, in_unschedulable, in_backoff, in_error_backoff,
]  # fmt: skip


@pytest.mark.parametrize("bring", PLACES)
def test_a_deleted_pod_is_nowhere(bring: Callable[[Desk], None]) -> None:
    desk = Desk()
    bring(desk)

    desk.queue.delete(a_pod_info("pod").uid)

    assert sum(desk.queue.lengths().values()) == 0
    desk.door.closed = set()
    desk.queue.on_cluster_event(NODE_ADDED, None, "yes", 1000.0)
    desk.queue.flush(1000.0)
    desk.queue.flush_unschedulable(1000.0)
    assert desk.queue.pop(1000.0) is None
    assert desk.queue.next_due() is None


@pytest.mark.parametrize("bring", [in_flight, in_binding])
@pytest.mark.parametrize("rejected_by", [[], ["Always"]])
def test_a_pod_deleted_during_an_attempt_does_not_come_back(
    bring: Callable[[Desk], None], rejected_by: list[str]
) -> None:
    desk = Desk()
    bring(desk)
    (queued,) = desk.queue.pods()
    desk.queue.delete(queued.pod.uid)

    desk.queue.requeue(queued, 1.0, rejected_by=rejected_by)

    assert desk.queue.pop(1000.0) is None
    assert sum(desk.queue.lengths().values()) == 0


@pytest.mark.parametrize("bring", PLACES)
def test_the_newest_version_of_a_pod_is_tried(bring: Callable[[Desk], None]) -> None:
    desk = Desk()
    bring(desk)
    desk.queue.update(a_pod_info("pod", labels={"v": "2"}), 0.0, lambda *_: POD_RELABELLED)
    for queued in tuple(desk.queue.pods()):
        if queued.sub_queue is SubQueue.IN_FLIGHT:
            desk.queue.requeue(queued, 0.0)
    desk.door.closed = set()
    desk.queue.update(a_pod_info("pod", labels={"size": "wide"}), 0.0, lambda *_: POD_RELABELLED)
    desk.queue.flush(100.0)

    (again,) = desk.all_popped(100.0)

    assert again.pod.labels == {"size": "wide"}


@pytest.mark.parametrize(
    ("labels", "event", "sub_queue"),
    [
        pytest.param({"size": "wide"}, POD_RELABELLED, SubQueue.ACTIVE, id="helps"),
        pytest.param({"size": "tall"}, POD_RELABELLED, SubQueue.UNSCHEDULABLE, id="does-not-help"),
        pytest.param({"size": "wide"}, None, SubQueue.UNSCHEDULABLE, id="nothing-that-matters"),
    ],
)
def test_an_update_wakes_a_pod_if_a_hint_says_so(
    labels: dict[str, str], event: ClusterEvent | None, sub_queue: SubQueue
) -> None:
    desk = Desk()
    in_unschedulable(desk)

    change = None if event is None else lambda *_: event
    desk.queue.update(a_pod_info("pod", labels=labels), 50.0, change)

    assert desk.where() is sub_queue


def test_an_update_does_not_shorten_backoff() -> None:
    desk = Desk()
    in_error_backoff(desk)

    desk.queue.update(a_pod_info("pod", labels={"size": "wide"}), 0.5, lambda *_: POD_RELABELLED)

    assert desk.where() is SubQueue.BACKOFF
    assert desk.queue.next_due() == 1.0


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    desk = Desk()
    desk.queue.update(a_pod_info("pod"), 0.0, lambda *_: POD_RELABELLED)

    assert desk.popped() == ["pod"]


# --- activate and leftovers ---


def test_pods_nothing_woke_for_long_are_tried_again() -> None:
    desk = Desk()
    desk.rejected(["Deaf"])

    desk.queue.flush_unschedulable(MAX_UNSCHEDULABLE_SECONDS)
    assert desk.where() is SubQueue.UNSCHEDULABLE
    desk.queue.flush_unschedulable(MAX_UNSCHEDULABLE_SECONDS + 1)

    assert desk.popped() == ["pod"]
    assert ("active", "UnschedulableTimeout") in desk.seen


def test_gated_pods_are_not_leftovers() -> None:
    desk = Desk()
    in_gated(desk)

    desk.queue.flush_unschedulable(10_000.0)

    assert desk.where() is SubQueue.GATED


# --- what metrics see ---


def test_lengths_by_place() -> None:
    desk = Desk()
    desk.door.closed = {"gated"}
    desk.add("gated", "failed", "rejected", "trying", "waiting")
    desk.queue.requeue(desk.pop(), 0.0)
    desk.queue.requeue(desk.pop(), 0.0, rejected_by=["Always"])
    desk.pop()

    assert dict(desk.queue.lengths()) == dict.fromkeys(SubQueue, 1)


def test_every_arrival_is_observed_with_its_cause() -> None:
    desk = Desk()
    desk.rejected()
    desk.queue.on_cluster_event(NODE_ADDED, None, None, 0.5)
    desk.queue.flush(1.0)

    assert desk.seen == [
        ("active", "PodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "Node"),
        ("active", "BackoffComplete"),
    ]


def test_new_pods_take_turns_with_rejected_ones() -> None:
    """A thousand pods that an event woke for nothing do not hold up one that was never tried."""
    queue = SchedulingQueue(
        PrioritySort(), {}, {"P": [EventRegistration(NODE_ADDED)]}, Backoff(0, 0)
    )
    for number in range(6):
        queue.add(a_pod_info(f"old-{number}"), 0.0)
    while (queued := queue.pop(0.0)) is not None:
        queue.requeue(queued, 0.0, rejected_by=["P"])
    queue.on_cluster_event(NODE_ADDED, None, None, 1.0)
    for number in range(3):
        queue.add(a_pod_info(f"new-{number}"), 2.0)
    queue.add(a_pod_info("urgent", priority=1), 3.0)

    order = []
    while (queued := queue.pop(3.0)) is not None:
        order.append(queued.pod.name)

    assert order[0] == "urgent"
    assert order[1:7] == ["new-0", "old-0", "new-1", "old-1", "new-2", "old-2"]
    assert order[7:] == ["old-3", "old-4", "old-5"]


class NamedObject(PreEnqueuePlugin):
    """A gate that opens when the object exists that all pods name."""

    name = "NamedObject"
    gates_on_referenced_objects = True

    def __init__(self) -> None:
        self.exists = False

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS if self.exists else unresolvable("missing")

    def referenced_objects(self, pod: PodInfo) -> Sequence[str]:
        return ("object",)

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (EventRegistration(NODE_ADDED),)


@pytest.mark.parametrize("door_is_first", [True, False])
def test_a_pod_behind_two_gates_hears_of_the_second_one_after_the_first(
    door_is_first: bool,
) -> None:
    door, named = Door(), NamedObject()
    door.closed = {"pod"}
    gates: list[PreEnqueuePlugin] = [door, named] if door_is_first else [named, door]
    queue = SchedulingQueue(
        PrioritySort(),
        {"default-scheduler": gates},
        {gate.name: gate.events_to_register() for gate in gates},
    )
    queue.add(a_pod_info("pod"), 0.0)

    for gate in gates:
        if gate is door:
            door.closed = set()
            queue.on_cluster_event(CLAIM_ADDED, None, "new", 1.0)
        else:
            named.exists = True
            queue.on_cluster_event(NODE_ADDED, None, "new", 1.0, "object")

    assert queue.lengths() == {SubQueue.ACTIVE: 1}
