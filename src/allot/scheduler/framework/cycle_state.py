"""What plugins remember from one step of a pod's cycle to the next."""

from __future__ import annotations

from typing import Any

from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.durations import PluginSamples


class CycleState:
    """One value per plugin, alive for one attempt to schedule one pod."""

    __slots__ = (
        "_values",
        "ranks_all_nodes",
        "samples",
        "skipped_filters",
        "skipped_scores",
        "time",
    )

    def __init__(
        self, time: DecisionTime = UNLIMITED, samples: PluginSamples | None = None
    ) -> None:
        self._values: dict[str, Any] = {}
        self.samples = samples
        """Times the plugins, in cycles that are sampled."""
        self.time = time
        """What plugins that may take long ask while they work."""
        self.skipped_filters: set[str] = set()
        """Plugins whose pre_filter said SKIP: their filter and add_pod/remove_pod are not called."""
        self.skipped_scores: set[str] = set()
        self.ranks_all_nodes = False
        """Whether a sample of the nodes that fit is not enough, unless the profile says how many are."""

    def __setitem__(self, plugin: str, value: Any) -> None:
        self._values[plugin] = value

    def __getitem__(self, plugin: str) -> Any:
        return self._values[plugin]

    def get(self, plugin: str) -> Any:
        return self._values.get(plugin)

    def clone(self) -> CycleState:
        """A copy to try things on: values that have a `clone` method are cloned, others are shared."""
        copy = CycleState(self.time)
        for plugin, value in self._values.items():
            clone = getattr(value, "clone", None)
            copy._values[plugin] = value if clone is None else clone()
        copy.skipped_filters = set(self.skipped_filters)
        copy.skipped_scores = set(self.skipped_scores)
        copy.ranks_all_nodes = self.ranks_all_nodes
        return copy
