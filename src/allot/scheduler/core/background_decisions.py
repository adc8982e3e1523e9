"""Decisions that take longer than the event loop can spare: made one after the other, in child processes.

The child decides as the scheduler would (`decide_with_limits`), and sends back what it found out about nodes. With that
the scheduler decides again, in an instant, so that a choice rests on the cluster as it is then. If the devices of a
node have changed meanwhile, what the child found out about it counts no longer.

First all pods get a little time, those that need more get it afterwards, and the next ones come first: a few
hopeless pods do not hold up those that are merely difficult.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import pickle
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from allot.scheduler.core.forked import ChildFailedError, can_fork, in_child
from allot.scheduler.core.scheduling_cycle import Chosen, CycleError, SchedulingCycle
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.deadlines import DecisionDeadline, DecisionLimits
from allot.scheduler.framework.plugins import ExportedResults, SlowFilterPlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo

log = logging.getLogger(__name__)

FIRST_ALLOWANCES: Final = (0.5, 2.0)
"""Seconds for the first attempts; after them, the whole decision limit."""
GRACE_SECONDS: Final = 2.0
"""A child that does not notice by itself that its time is over is killed after so much longer."""
MIN_RETRY_SECONDS: Final = 0.01
"""With less time left, nodes that took too long are not tried once more."""


class ChildResult(NamedTuple):
    """What a child found out."""

    error: str
    """What went wrong, in which case there is no decision to repeat; empty if nothing did."""
    timeouts: int
    """How many nodes took too long."""
    answers: tuple[tuple[str, ExportedResults], ...]
    """By plugin: what it exports."""


def decide_with_limits(
    cycle: SchedulingCycle, profile: Profile, cluster: ClusterState, pod: PodInfo, seconds: float
) -> ChildResult:
    """Decide within a wall-clock limit that nodes share, and collect what plugins found out."""
    plugins = slow_plugins(profile)
    node_seconds = min((each.node_seconds for each in plugins if each.node_seconds), default=0.0)
    time = DecisionDeadline(seconds, node_seconds, len(cluster))
    while True:
        decision = cycle.decide(pod, time)
        if isinstance(decision, CycleError):
            return ChildResult(decision.status.message, 0, ())
        if isinstance(decision, Chosen) or not time.is_rationed:
            break
        left = time.seconds_left
        if left < MIN_RETRY_SECONDS:
            break
        # No node fits so far, and some had less than their limit so that all could be tried.
        again = sum(plugin.retry_timeouts(decision.state) for plugin in plugins)
        if not again:
            break
        time = DecisionDeadline(left, node_seconds, again)
    chosen = cluster.node(decision.node_name) if isinstance(decision, Chosen) else None
    decision.state.time = DecisionDeadline(
        max(time.seconds_left, MIN_RETRY_SECONDS), node_seconds, 1
    )
    answers = tuple(
        (plugin.name, exported)
        for plugin in plugins
        if (exported := plugin.export_results(decision.state, chosen)) is not None
    )
    return ChildResult("", sum(exported.timeouts for _, exported in answers), answers)


def slow_plugins(profile: Profile) -> list[SlowFilterPlugin]:
    return [plugin for plugin in profile.filter if isinstance(plugin, SlowFilterPlugin)]


class BackgroundDecisions:
    """Pods that wait for such a decision. `resume` is called when there is one."""

    def __init__(
        self,
        limits: DecisionLimits,
        resume_attempt: Callable[[QueuedPodInfo], bool],
        decide: Callable[[QueuedPodInfo, float], ChildResult],
        resume: Callable[[QueuedPodInfo, ChildResult | ChildFailedError, bool], None],
    ) -> None:
        """`resume_attempt` says whether the pod is still to be scheduled; `decide` runs in the child.

        `resume` gets the findings, and whether they are final: there is no more time to be had.
        """
        self._allowances = [
            *(seconds for seconds in FIRST_ALLOWANCES if seconds < limits.decision_seconds),
            limits.decision_seconds,
        ]
        self._take_up = resume_attempt
        self._decide = decide
        self._resume = resume
        self._waiting: list[tuple[int, int, QueuedPodInfo]] = []
        self._tickets = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, queued: QueuedPodInfo) -> None:
        level = min(queued.background_attempts, len(self._allowances) - 1)
        heapq.heappush(self._waiting, (level, next(self._tickets), queued))

    async def run(self) -> None:
        """Decide about all that wait."""
        while self._waiting:
            level, _, queued = heapq.heappop(self._waiting)
            if not self._take_up(queued):
                continue
            queued.background_attempts += 1
            is_final = level == len(self._allowances) - 1
            found = await self._findings(queued, self._allowances[level])
            self._resume(queued, found, is_final)
            await asyncio.sleep(0)

    async def _findings(
        self, queued: QueuedPodInfo, seconds: float
    ) -> ChildResult | ChildFailedError:
        work = partial(self._decide, queued, seconds)
        if not can_fork:
            return work()
        try:
            answer = await in_child(lambda: pickle.dumps(work()), seconds + GRACE_SECONDS)
        except ChildFailedError as error:
            log.warning("pod %s: deciding about it took too long: %s", queued.pod.key, error)
            return error
        findings: ChildResult = pickle.loads(answer)  # noqa: S301 - our own child wrote it
        return findings
