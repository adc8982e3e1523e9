"""How long a decision about one pod may take.

    in the event loop          beside it (`background_decisions`)
    ┌───────┐ ┌───────┐        ┌──────────────────────────────┐
    │ slice │ │ slice │ ─ … ─▶ │ decision limit               │ ─▶ a node fits, or the pod waits
    └───────┘ └───────┘        │ ├ node ┤ ├ node ┤ ├── node ──┤
     CPU time, a few ms        └──────────────────────────────┘ wall-clock time, seconds

Most decisions end within the first slice. Otherwise the decision continues in the next slice, after other tasks of
the event loop, such as bindings and informers, have run; results of nodes are cached. A decision that makes no
progress in a slice, or takes too many of them, is made in a child process. Slices with results for many nodes do not
count: the first pod of its kind in a large cluster needs some. Before a child is started, devices that
are new are prepared in further slices: a child would lose what it prepares.

`check` raises `DeadlineExceededError` when the time is over. Slices count CPU time, so that they do not depend on how
busy the machine is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, Protocol

from allot.deadline import DeadlineExceededError


class DecisionLimits(NamedTuple):
    """The limits of one scheduler, in seconds."""

    decision_seconds: float = 30.0
    """For the whole decision, all nodes together. Wall-clock time."""
    slice_seconds: float = 0.02
    """For one slice in the event loop. CPU time."""
    max_slices: int = 10
    """How many slices before the decision is made in a child process; those with many results do not count."""


class DecisionTime(Protocol):
    """The time limit of a decision. Plugins check it; nodes share it."""

    skips_slow_nodes: ClassVar[bool]
    """Whether a node that times out is skipped. If not, the whole decision is interrupted."""
    is_limited: ClassVar[bool]
    """Whether there is a limit. If not, only step budgets apply."""
    caches_timeouts: ClassVar[bool]
    """Whether timeouts of nodes are cached: the node had all the time that it can get."""

    def check(self) -> None:
        """Raises `DeadlineExceededError` when the time is over."""
        ...

    def begin_node(self) -> None:
        """The computation for another node begins."""
        ...

    def result_cached(self) -> None:
        """A result was cached, so that the next slice can continue after it."""
        ...

    def devices_prepared(self, number: int) -> None:
        """Before the time was over, so many devices were prepared, or expressions evaluated on them."""
        ...


MIN_PREPARED: Final = 64
"""A slice that prepares fewer devices spends its time otherwise: on a search, or on expressions that take long."""


MANY_RESULTS: Final = 256
"""So many results in one slice: nodes are quick to evaluate. A result of the filters and one of a slow plugin count as two."""


class UnlimitedTime:
    """In virtual time and offline: only step budgets apply."""

    skips_slow_nodes: ClassVar[bool] = True
    is_limited: ClassVar[bool] = False
    caches_timeouts: ClassVar[bool] = True

    def check(self) -> None:
        pass

    def begin_node(self) -> None:
        pass

    def result_cached(self) -> None:
        pass

    def devices_prepared(self, number: int) -> None:
        pass


UNLIMITED: Final = UnlimitedTime()


class TimeSlice:
    """One slice of a decision in the event loop."""

    skips_slow_nodes: ClassVar[bool] = False
    is_limited: ClassVar[bool] = True
    caches_timeouts: ClassVar[bool] = False

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.thread_time,
        wall_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wall_clock` is never slower than `clock`."""
        self._clock = clock
        self._ends = clock() + seconds
        self._wall_clock = wall_clock
        self._may_end = wall_clock() + seconds
        self._results = 0
        self._prepared = 0

    def check(self) -> None:
        # To ask for CPU time is a system call, which takes ten times as long.
        if self._wall_clock() >= self._may_end and self._clock() > self._ends:
            raise DeadlineExceededError

    def begin_node(self) -> None:
        self.check()

    def result_cached(self) -> None:
        self._results += 1

    def devices_prepared(self, number: int) -> None:
        self._prepared += number

    @property
    def has_progress(self) -> bool:
        """Whether the next slice can begin with more than this one did."""
        return self._results > 0

    @property
    def has_many_results(self) -> bool:
        """Whether nodes are quick to evaluate, so that further slices will end soon."""
        return self._results >= MANY_RESULTS

    @property
    def was_for_preparation(self) -> bool:
        """Whether it was spent on preparing devices: the next slice goes on after them."""
        return self._prepared >= MIN_PREPARED


class NodeTimeLimit:
    """For dry runs beside a decision, such as preemption: a node that times out is skipped."""

    skips_slow_nodes: ClassVar[bool] = True
    is_limited: ClassVar[bool] = True
    caches_timeouts: ClassVar[bool] = False

    def __init__(
        self, node_seconds: float, seconds: float, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._node_seconds = node_seconds
        self._ends = self._node_ends = clock() + seconds

    def check(self) -> None:
        if self._clock() > self._node_ends:
            raise DeadlineExceededError

    def begin_node(self) -> None:
        self._node_ends = min(self._clock() + self._node_seconds, self._ends)

    def result_cached(self) -> None:
        pass

    def devices_prepared(self, number: int) -> None:
        pass


class DecisionDeadline:
    """The wall-clock limits of a decision: one for the whole, one per node, and a fair share of the first.

    A node gets what is left divided by the nodes to come, at most `node_seconds`. Nodes that need less leave the
    rest to the others, so that none can spend what the rest needs.
    """

    skips_slow_nodes: ClassVar[bool] = True
    is_limited: ClassVar[bool] = True
    caches_timeouts: ClassVar[bool] = True

    def __init__(
        self,
        decision_seconds: float,
        node_seconds: float,
        nodes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`node_seconds` is 0 if only the decision's limit counts."""
        self._clock = clock
        self.started_at = clock()
        self._ends = self.started_at + decision_seconds
        self._node_seconds = node_seconds or decision_seconds
        self._nodes_left = nodes
        self._node_ends = self._ends
        self.is_rationed = False
        """Whether some node had less than `node_seconds`, because nodes share the limit."""

    @property
    def seconds_left(self) -> float:
        return max(self._ends - self._clock(), 0.0)

    def check(self) -> None:
        if self._clock() >= self._node_ends:
            raise DeadlineExceededError

    def begin_node(self) -> None:
        left = self.seconds_left
        share = left / max(self._nodes_left, 1)
        self._nodes_left -= 1
        if share < self._node_seconds:
            self.is_rationed = True
        self._node_ends = self._clock() + min(share, self._node_seconds)

    def result_cached(self) -> None:
        pass

    def devices_prepared(self, number: int) -> None:
        pass
