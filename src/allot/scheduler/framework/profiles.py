"""A profile: the plugins of one scheduler name at each extension point, in order, with their weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from allot.scheduler.framework.plugins import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

P = TypeVar("P", bound=Plugin)


class Profile:
    """The plugins of one scheduler name, by extension point."""

    def __init__(
        self,
        scheduler_name: str,
        plugins: Iterable[Plugin],
        weights: Mapping[str, int] | None = None,
        *,
        disabled: Mapping[str, frozenset[str]] | None = None,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        """`disabled` are plugins switched off at single points, such as `score`, by point."""
        self.scheduler_name = scheduler_name
        self.plugins = tuple(plugins)
        self._plugin_by_name = {plugin.name: plugin for plugin in self.plugins}
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self._disabled = disabled or {}
        self.pre_enqueue = self._at("preEnqueue", PreEnqueuePlugin)  # type: ignore[type-abstract]
        self.queue_sort = self._at("queueSort", QueueSortPlugin)  # type: ignore[type-abstract]
        self.pre_filter = self._at("preFilter", PreFilterPlugin)  # type: ignore[type-abstract]
        self.filter = self._at("filter", FilterPlugin)  # type: ignore[type-abstract]
        self.post_filter = self._at("postFilter", PostFilterPlugin)  # type: ignore[type-abstract]
        self.pre_score = self._at("preScore", PreScorePlugin)  # type: ignore[type-abstract]
        self.score = self._at("score", ScorePlugin)  # type: ignore[type-abstract]
        self.reserve = self._at("reserve", ReservePlugin)  # type: ignore[type-abstract]
        self.permit = self._at("permit", PermitPlugin)  # type: ignore[type-abstract]
        self.pre_bind = self._at("preBind", PreBindPlugin)  # type: ignore[type-abstract]
        self.bind = self._at("bind", BindPlugin)  # type: ignore[type-abstract]
        self.post_bind = self._at("postBind", PostBindPlugin)  # type: ignore[type-abstract]
        given = weights or {}
        self.weight_by_plugin = {plugin.name: given.get(plugin.name, 1) for plugin in self.score}

    def _at(self, point: str, kind: type[P]) -> tuple[P, ...]:
        off = self._disabled.get(point, frozenset())
        return tuple(
            plugin for plugin in self.plugins if isinstance(plugin, kind) and plugin.name not in off
        )

    def plugin(self, name: str) -> Plugin | None:
        return self._plugin_by_name.get(name)
