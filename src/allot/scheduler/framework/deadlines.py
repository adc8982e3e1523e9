"""How long a decision about one pod may take.

    in the event loop          beside it (`hard_decisions`)
    ┌───────┐ ┌───────┐        ┌──────────────────────────────┐
    │ slice │ │ slice │ ─ … ─▶ │ decision limit               │ ─▶ a node fits, or the pod waits
    └───────┘ └───────┘        │ ├ node ┤ ├ node ┤ ├── node ──┤
     CPU time, a few ms        └──────────────────────────────┘ wall-clock time, seconds

Most decisions end within the first slice. One that does not goes on in the next, after bindings, informers and
whatever else shares the event loop had their turn; what was found out about nodes is remembered. A decision that a
slice does not bring forward, or that takes too many of them, is made in a process of its own.

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
    """For one stretch in the event loop. CPU time."""
    max_slices: int = 10
    """So many before the decision is made in a process of its own."""


class DecisionTime(Protocol):
    """The time a decision has. The plugins ask it; the nodes share it."""

    skips_slow_nodes: ClassVar[bool]
    """Whether a node that runs out of its time is passed over. If not, the whole decision is interrupted."""
    is_limited: ClassVar[bool]
    """Whether it ever ends. If not, step budgets must."""
    caches_timeouts: ClassVar[bool]
    """Whether that a node took too long is worth remembering: it had all the time it can get."""

    def check(self) -> None:
        """Raises `DeadlineExceededError` when the time is over."""
        ...

    def begin_node(self) -> None:
        """Something about another node must be found out, and may take a while."""
        ...

    def result_cached(self) -> None:
        """Something was found out that need not be found out again."""
        ...


class UnlimitedTime:
    """In virtual time and offline: step budgets alone act."""

    skips_slow_nodes: ClassVar[bool] = True
    is_limited: ClassVar[bool] = False
    caches_timeouts: ClassVar[bool] = True

    def check(self) -> None:
        pass

    def begin_node(self) -> None:
        pass

    def result_cached(self) -> None:
        pass


UNLIMITED: Final = UnlimitedTime()


class TimeSlice:
    """One stretch of a decision in the event loop."""

    skips_slow_nodes: ClassVar[bool] = False
    is_limited: ClassVar[bool] = True
    caches_timeouts: ClassVar[bool] = False

    def __init__(self, seconds: float, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._ends = clock() + seconds
        self.has_progress = False
        """Whether the next slice can begin with more than this one did."""

    def check(self) -> None:
        if self._clock() > self._ends:
            raise DeadlineExceededError

    def begin_node(self) -> None:
        self.check()

    def result_cached(self) -> None:
        self.has_progress = True


class NodeTimeLimit:
    """For questions beside a decision, such as what evictions would change: a node that takes long is passed over."""

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
        """Whether some node had less than `node_seconds` because others wait for theirs."""

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
