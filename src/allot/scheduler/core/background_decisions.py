"""Background decisions: those that take too long for the event loop, one at a time, in child processes.

The child runs the same scheduling cycle (`decide_with_limits`) and returns the results of nodes. The scheduler imports
them and runs the cycle again, so that the choice is based on the current cluster. Results of nodes whose devices have
changed since are dropped.

What a child caches is lost with it. Devices that are not prepared yet are therefore prepared by the scheduler itself, in
slices between other decisions, before the child is forked.

Every pod first gets a short time limit; pods that need more wait behind the new ones. A few pods that fit nowhere do
not delay pods that take a moderate time.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import pickle
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from allot.scheduler.core.decisions import Chosen, CycleError
from allot.scheduler.core.forked import ChildFailedError, can_fork, in_child
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.deadlines import DecisionDeadline, DecisionLimits
from allot.scheduler.framework.plugins import ExportedResults, SlowFilterPlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo

log = logging.getLogger(__name__)

FIRST_ALLOWANCES: Final = (0.5, 2.0)
"""Time limits of the first attempts in seconds; later ones get the whole decision limit."""
GRACE_SECONDS: Final = 2.0
"""A child that overruns its time limit by this much is killed."""
MIN_RETRY_SECONDS: Final = 0.01
"""Nodes that timed out are tried again only if at least this much time is left."""


class ChildResult(NamedTuple):
    """The result of a decision in a child process."""

    error: str
    """The error that ended the decision; empty if there was none."""
    timeouts: int
    """The number of nodes that timed out."""
    answers: tuple[tuple[str, ExportedResults], ...]
    """The exported results, by plugin."""


def decide_with_limits(
    cycle: SchedulingCycle, profile: Profile, cluster: ClusterState, pod: PodInfo, seconds: float
) -> ChildResult:
    """Decide within a wall-clock limit that all nodes share, and export the plugins' results."""
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
        # No node fits so far, and some had less than their limit because the time was rationed.
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
    """The queue of pods that need a background decision, and its worker."""

    def __init__(
        self,
        limits: DecisionLimits,
        resume_attempt: Callable[[QueuedPodInfo], bool],
        prepare: Callable[[QueuedPodInfo], Awaitable[bool]],
        decide: Callable[[QueuedPodInfo, float], ChildResult],
        resume: Callable[[QueuedPodInfo, ChildResult | ChildFailedError, bool], Awaitable[None]],
    ) -> None:
        """`resume_attempt` puts the pod in flight again; False if it is gone. `prepare` prepares devices for it, and
        says whether that was enough for a decision. `decide` runs in the child.

        `resume` gets the result, and whether it is final: the time limit cannot be raised further.
        """
        self._allowances = [
            *(seconds for seconds in FIRST_ALLOWANCES if seconds < limits.decision_seconds),
            limits.decision_seconds,
        ]
        self._take_up = resume_attempt
        self._prepare = prepare
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
        """Decide about all pods in the queue."""
        while self._waiting:
            level, _, queued = heapq.heappop(self._waiting)
            if not self._take_up(queued):
                continue
            is_begun = queued.background_attempts > 0 and not queued.needs_preparation
            if not is_begun and await self._prepare(queued):
                continue
            queued.background_attempts += 1
            is_final = level == len(self._allowances) - 1
            found = await self._findings(queued, self._allowances[level])
            await self._resume(queued, found, is_final)
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
            log.warning("pod %s: background decision failed: %s", queued.pod.key, error)
            return error
        findings: ChildResult = pickle.loads(answer)  # noqa: S301 - our own child wrote it
        return findings
