"""Decisions that take long: they end in time, in another process if need be, and hold up nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from allot.client.client import Client
from allot.deadline import DeadlineExceededError
from allot.scheduler.core import background_decisions
from allot.scheduler.core.forked import ChildFailedError, can_fork, in_child
from allot.scheduler.core.pod_status import PodStatusReporter
from allot.scheduler.core.scheduler import MAX_PREPARATION_SLICES, UNDECIDED, Scheduler
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.framework import deadlines
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import (
    MANY_RESULTS,
    MIN_PREPARED,
    DecisionDeadline,
    DecisionLimits,
    NodeTimeLimit,
    TimeSlice,
)
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.plugins import (
    BindPlugin,
    NodesByName,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    SlowFilterPlugin,
)
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Status, failed, unresolvable
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from tests.unit.client.fakes import ScriptedTransport, answer
from tests.unit.scheduler.core.test_pod_status import Heard
from tests.unit.scheduler.state.objects import a_cluster, a_node_facts, a_pod_info

pytestmark = pytest.mark.skipif(not can_fork, reason="child processes need fork")

ENDLESS = "endless"
LONG = "1000000"
"""Asks: more than fit into a slice on any machine."""
ALLOWED_TO_TAKE = 60.0


PREPARING = "preparing"
"""Needs so many slices: each prepares some of the devices, for all pods."""
SLICES_TO_PREPARE = 30


class Answers(NamedTuple):
    """What `Slow` found out."""

    by_pod: dict[str, dict[str, Status]]

    @property
    def timeouts(self) -> int:
        return sum(bool(each.ended_by) for found in self.by_pod.values() for each in found.values())


class Slow(PreFilterPlugin, SlowFilterPlugin, BindPlugin):
    """Pods say by their labels what happens on a node: so many asks before it fits, `endless`, or an error."""

    name: ClassVar[str] = "Slow"
    filters_locally: ClassVar[bool] = False

    def __init__(self, node_seconds: float = 0.0) -> None:
        self._seconds = node_seconds
        self.known: dict[str, dict[str, Status]] = {}
        self.searches = 0
        self.slices_to_prepare = SLICES_TO_PREPARE
        self.bound: list[str] = []

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (EventRegistration(ClusterEvent(NODE, Action.ADD)),)

    @property
    def node_seconds(self) -> float:
        return self._seconds

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        state[self.name] = pod
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        known = self.known.setdefault(pod.name, {})
        if node.name not in known:
            status = self._searched(state, pod, node)
            if status.error is not None:
                return status
            known[node.name] = status
            state.time.result_cached()
        return known[node.name]

    def _searched(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.searches += 1
        state.time.begin_node()
        wanted = pod.labels.get(node.name, "0")
        if wanted == PREPARING:
            return self._prepared(state)
        if wanted == "error":
            spin(state.time.check, int(LONG))
            return failed(ValueError("no such key: a"))
        try:
            spin(state.time.check, None if wanted == ENDLESS else int(wanted))
        except DeadlineExceededError:
            if not state.time.skips_slow_nodes:
                raise
            return unresolvable("timed out", ended_by="claim c, request r")
        return SUCCESS

    def _prepared(self, state: CycleState) -> Status:
        if not self.slices_to_prepare:
            return SUCCESS
        self.slices_to_prepare -= 1
        state.time.devices_prepared(MIN_PREPARED)
        if state.time.skips_slow_nodes:
            return unresolvable("timed out", ended_by="claim c, request r")
        raise DeadlineExceededError

    def retry_timeouts(self, state: CycleState) -> int:
        pod: PodInfo = state[self.name]
        found = self.known.get(pod.name, {})
        slow = [name for name, status in found.items() if status.ended_by]
        for name in slow:
            del found[name]
        return len(slow)

    def export_results(self, state: CycleState, node: NodeInfo | None) -> Answers:
        return Answers(self.known)

    def import_results(
        self, exported: Any, pod: PodInfo, nodes: NodesByName, *, with_timeouts: bool
    ) -> None:
        for name, found in exported.by_pod.items():
            known = self.known.setdefault(name, {})
            known.update({n: s for n, s in found.items() if with_timeouts or not s.ended_by})

    def forget_stale(self, exported: Any) -> None:
        pass

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.bound.append(f"{pod.name} on {node_name}")
        return SUCCESS


def spin(ask: Callable[[], None], times: int | None) -> None:
    count = 0
    while times is None or count < times:
        ask()
        count += 1


class Stage:
    """A scheduler that runs in real time, and no API server."""

    def __init__(self, limits: DecisionLimits, nodes: int = 1, *more: Plugin) -> None:
        self.plugin = Slow()
        self.queue = SchedulingQueue(PrioritySort(), {}, {"Slow": self.plugin.events_to_register()})
        self.heard = Heard()
        transport = ScriptedTransport(*[answer(200, {"metadata": {}})] * 50)
        outcomes = PodStatusReporter(
            Client(transport), self.heard, lambda: datetime(2026, 1, 1, tzinfo=UTC)
        )
        self.scheduler = Scheduler(
            {"default-scheduler": Profile("default-scheduler", (*more, self.plugin))},
            self.queue,
            a_cluster(a_node_facts(f"n{number}") for number in range(nodes)),
            outcomes,
            SchedulerMetrics(),
            limits=limits,
        )

    def add(self, name: str, **spins: str) -> None:
        self.queue.add(a_pod_info(name, labels=spins), 0.0)

    def place_of(self, name: str) -> SubQueue | None:
        return next((each.sub_queue for each in self.queue.pods() if each.pod.name == name), None)

    def notes(self) -> list[str]:
        return [
            note
            for _, _, reason, _, note in self.heard.events
            if reason != "Scheduled" and UNDECIDED not in note
        ]

    def play(self, *stories: Callable[[], bool]) -> None:
        """Run until each of these holds, one after the other."""

        async def run() -> None:
            running = asyncio.create_task(self.scheduler.run())
            async with asyncio.timeout(ALLOWED_TO_TAKE):
                for holds in stories:
                    while not holds():
                        await asyncio.sleep(0.005)
            running.cancel()
            await asyncio.wait((running,))

        asyncio.run(run())


LIMITS = DecisionLimits(decision_seconds=0.3, slice_seconds=0.005)


def test_an_endless_decision_ends_and_says_where() -> None:
    stage = Stage(LIMITS)
    stage.add("hopeless", n0=ENDLESS)
    stage.play(lambda: bool(stage.notes()))

    assert stage.notes() == [
        "0/1 nodes are available: 1 timed out. Without an answer: n0; claim c, request r."
    ]


def test_it_does_not_hold_up_others() -> None:
    stage = Stage(DecisionLimits(decision_seconds=ALLOWED_TO_TAKE, slice_seconds=0.005))
    stage.add("hopeless", n0=ENDLESS)
    for number in range(20):
        stage.add(f"easy-{number}")
    stage.play(lambda: len(stage.plugin.bound) == 20)

    assert stage.notes() == [], "the first is still being decided about"


def test_it_comes_back_after_pauses() -> None:
    stage = Stage(LIMITS)
    stage.add("hopeless", n0=ENDLESS)
    stage.play(lambda: bool(stage.notes()) and stage.place_of("hopeless") is SubQueue.UNSCHEDULABLE)

    due = stage.queue.next_due()
    assert due is not None
    stage.queue.flush(due)
    assert stage.place_of("hopeless") is SubQueue.ACTIVE


def test_devices_are_prepared_by_the_scheduler_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child would lose what it prepares, and each later one would prepare it again."""
    children = 0

    async def counting(work: Callable[[], bytes], seconds: float) -> bytes:
        nonlocal children
        children += 1
        return await in_child(work, seconds)

    monkeypatch.setattr(background_decisions, "in_child", counting)
    stage = Stage(DecisionLimits(decision_seconds=ALLOWED_TO_TAKE, slice_seconds=0.005))
    for number in range(3):
        stage.add(f"first-{number}", n0=PREPARING)
    for number in range(20):
        stage.add(f"easy-{number}")
    stage.play(lambda: len(stage.plugin.bound) == 23)

    assert children == 0
    assert stage.plugin.searches <= SLICES_TO_PREPARE + 2 * 23
    assert stage.plugin.bound[0].startswith("easy"), "others are scheduled between the slices"


def test_what_takes_forever_to_prepare_is_left_to_a_child() -> None:
    stage = Stage(LIMITS)
    stage.plugin.slices_to_prepare = 10**9
    stage.add("first", n0=PREPARING)
    stage.play(lambda: bool(stage.notes()))

    assert stage.plugin.searches <= MAX_PREPARATION_SLICES + 2


def test_a_difficult_decision_is_made_beside_the_loop() -> None:
    stage = Stage(DecisionLimits(decision_seconds=ALLOWED_TO_TAKE, slice_seconds=0.005))
    stage.add("difficult", n0=LONG)
    stage.play(lambda: bool(stage.plugin.bound))

    assert stage.plugin.bound == ["difficult on n0"]
    assert stage.plugin.searches <= 3, "here it was only begun"


def test_other_nodes_are_tried_after_one_that_takes_too_long() -> None:
    stage = Stage(LIMITS, 3)
    stage.add("picky", n0=ENDLESS, n1=ENDLESS)
    stage.play(lambda: bool(stage.plugin.bound))

    assert stage.plugin.bound == ["picky on n2"]


class Thorough(ScorePlugin):
    """Needs a fifth of a slice for each node."""

    name: ClassVar[str] = "Thorough"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        ends = time.thread_time() + LIMITS.slice_seconds / 5
        while time.thread_time() < ends:
            pass
        return 1


def test_nodes_are_scored_in_slices_after_a_background_decision() -> None:
    """Scores for which there are more slices than background decisions of one pod."""
    stage = Stage(LIMITS, 60, Thorough())
    stage.add("pod", n0=LONG)
    stage.play(lambda: bool(stage.plugin.bound) or bool(stage.notes()))

    assert stage.notes() == []


def test_many_small_answers_are_found_in_slices() -> None:
    """Each slice advances by one node at least, so that the loop is never held for long."""
    limits = DecisionLimits(ALLOWED_TO_TAKE, slice_seconds=0.005, max_slices=10_000)
    stage = Stage(limits, 90)  # fewer than a hundred are all tried
    stage.add("wide", **{f"n{number}": "1000" for number in range(90)})
    stage.play(lambda: bool(stage.plugin.bound))

    assert stage.plugin.searches > 90, "some were interrupted"
    assert len(stage.plugin.known["wide"]) == 90


def test_slices_with_results_for_many_nodes_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pod of its kind in a large cluster: a child would have to send all results."""
    monkeypatch.setattr(background_decisions, "in_child", None)
    monkeypatch.setattr(deadlines, "MANY_RESULTS", 4)
    stage = Stage(DecisionLimits(ALLOWED_TO_TAKE, slice_seconds=0.005, max_slices=1), 90)
    stage.add("wide", **{f"n{number}": "1000" for number in range(90)})
    stage.play(lambda: bool(stage.plugin.bound))

    assert stage.plugin.searches > 90, "some were interrupted"


def test_an_error_in_a_child_is_reported() -> None:
    stage = Stage(DecisionLimits(ALLOWED_TO_TAKE, slice_seconds=0.005))
    stage.add("broken", n0="error")
    stage.play(lambda: bool(stage.notes()))

    assert stage.notes() == ['running "Slow" filter plugin: no such key: a']


def test_a_pod_that_is_deleted_meanwhile_is_forgotten() -> None:
    stage = Stage(LIMITS)
    stage.add("hopeless", n0=ENDLESS)
    uid = next(iter(stage.queue.pods())).pod.uid
    stage.queue.delete(uid)
    stage.add("other", n0=ENDLESS)
    stage.play(lambda: bool(stage.notes()))

    assert [queued.pod.name for queued in stage.queue.pods()] == ["other"]


# --- child processes ---


def test_a_child_answers() -> None:
    assert asyncio.run(in_child(lambda: b"x" * 1_000_000, ALLOWED_TO_TAKE)) == b"x" * 1_000_000


def test_a_child_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> bytes:
        raise ValueError("no such device")

    with pytest.raises(ChildFailedError, match=r"without an answer \(exit code 1\)"):
        asyncio.run(in_child(fails, ALLOWED_TO_TAKE))
    assert "ValueError: no such device" in capfd.readouterr().err


def test_a_child_that_is_killed() -> None:
    def killed() -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b"not reached"

    with pytest.raises(ChildFailedError, match=r"without an answer \(Killed\)"):
        asyncio.run(in_child(killed, ALLOWED_TO_TAKE))


def test_a_child_that_does_not_end_is_killed(tmp_path: Path) -> None:
    def endless() -> bytes:
        (tmp_path / "pid").write_text(str(os.getpid()))
        while True:
            pass

    async def run() -> None:
        with pytest.raises(ChildFailedError, match="ended after"):
            await in_child(endless, 1.0)

    asyncio.run(run())
    with pytest.raises(ChildProcessError):
        os.waitpid(int((tmp_path / "pid").read_text()), os.WNOHANG)


# --- limits ---


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_no_node_can_spend_what_the_rest_needs() -> None:
    clock = Clock()
    times = DecisionDeadline(10.0, node_seconds=4.0, nodes=5, clock=clock)
    ends = []
    for _ in range(5):
        times.begin_node()
        began = clock.now
        while True:
            clock.now += 0.25
            try:
                times.check()
            except DeadlineExceededError:
                break
        ends.append(clock.now - began)

    assert ends == [2.0] * 5
    assert times.is_rationed


def test_what_quick_nodes_leave_goes_to_the_others() -> None:
    clock = Clock()
    times = DecisionDeadline(10.0, node_seconds=4.0, nodes=5, clock=clock)
    for _ in range(4):
        times.begin_node()
        times.check()
    times.begin_node()
    clock.now = 3.9
    times.check()
    clock.now = 4.0
    with pytest.raises(DeadlineExceededError):
        times.check()


def test_a_slice_ends() -> None:
    clock = Clock()
    time_slice = TimeSlice(0.02, clock, clock)
    time_slice.check()
    clock.now = 0.021
    with pytest.raises(DeadlineExceededError):
        time_slice.check()
    assert not time_slice.has_progress


def test_a_slice_counts_cpu_time() -> None:
    cpu, wall = Clock(), Clock()
    time_slice = TimeSlice(0.02, cpu, wall)
    wall.now, cpu.now = 60.0, 0.02
    time_slice.check()
    cpu.now = 0.021
    with pytest.raises(DeadlineExceededError):
        time_slice.check()


def test_a_slice_does_not_ask_for_cpu_time_before_it_may_be_over() -> None:
    wall, asked = Clock(), 0

    def cpu() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    time_slice = TimeSlice(0.02, cpu, wall)
    for now in (0.0, 0.019, 0.02):
        wall.now = now
        time_slice.check()
    assert asked == 2, "when it begins, and when it may be over"


def test_a_slice_knows_whether_it_had_many_results() -> None:
    time_slice = TimeSlice(0.02, Clock())
    answers = [(time_slice.has_progress, time_slice.has_many_results)]
    for count in (1, MANY_RESULTS - 2, 1):
        for _ in range(count):
            time_slice.result_cached()
        answers.append((time_slice.has_progress, time_slice.has_many_results))
    assert answers == [(False, False), (True, False), (True, False), (True, True)]


def test_a_slice_that_prepares_many_devices_is_worth_another() -> None:
    time_slice = TimeSlice(0.02, Clock())
    answers = []
    for count in (MIN_PREPARED - 1, 1):
        time_slice.devices_prepared(count)
        answers.append(time_slice.was_for_preparation)
    assert answers == [False, True]
    assert not time_slice.has_progress, "other pods come first"


def test_questions_beside_a_decision_pass_nodes_over() -> None:
    clock = Clock()
    brief = NodeTimeLimit(0.02, 0.1, clock)
    assert brief.skips_slow_nodes
    assert not brief.caches_timeouts
    ends = []
    for _ in range(7):
        brief.begin_node()
        began = clock.now
        with contextlib.suppress(DeadlineExceededError):
            while clock.now < began + 1:
                brief.check()
                clock.now += 0.01
        ends.append(round(clock.now - began, 2))

    assert ends[0] == 0.03
    assert ends[-1] == 0.0, "nothing is left of the whole"
