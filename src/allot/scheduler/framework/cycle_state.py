"""The cycle state: values that plugins keep from one extension point to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.durations import PluginSamples

if TYPE_CHECKING:
    from allot.scheduler.framework.ordered_binding import OrderedBinding


class CycleState(dict[str, Any]):
    """One value per plugin, for one scheduling attempt of one pod."""

    __slots__ = (
        "binding",
        "ranks_all_nodes",
        "samples",
        "skipped_filters",
        "skipped_scores",
        "time",
    )

    def __init__(
        self, time: DecisionTime = UNLIMITED, samples: PluginSamples | None = None
    ) -> None:
        self.samples = samples
        """Times the plugins, in cycles that are sampled."""
        self.time = time
        """The time limit that slow plugins check."""
        self.skipped_filters: set[str] = set()
        """Plugins whose pre_filter said SKIP: their filter and add_pod/remove_pod are not called."""
        self.skipped_scores: set[str] = set()
        self.ranks_all_nodes = False
        """Whether all feasible nodes are scored instead of a sample, unless the profile sets a percentage."""
        self.binding: OrderedBinding | None = None
        """For the last pre_bind plugin of the pod: the binding, which it may send with its last write."""

    def clone(self) -> CycleState:
        """A copy for dry runs: values with a `clone` method are cloned, others are shared."""
        copy = CycleState(self.time)
        for plugin, value in self.items():
            clone = getattr(value, "clone", None)
            copy[plugin] = value if clone is None else clone()
        copy.skipped_filters = set(self.skipped_filters)
        copy.skipped_scores = set(self.skipped_scores)
        copy.ranks_all_nodes = self.ranks_all_nodes
        return copy
