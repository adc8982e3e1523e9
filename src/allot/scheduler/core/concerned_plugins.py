"""Which plugins of a profile concern a pod: those that say so of its shape are not asked again for each pod."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.scheduler.framework.plugins import PreFilterPlugin, PreScorePlugin, has_own
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.state.pods import PodInfo, PodShape

MAX_SHAPES: Final = 200
"""Shapes of pods whose plugins are remembered; then all are forgotten."""


class Concerned(NamedTuple):
    """The plugins to ask about pods of one shape, and the names of those that would say SKIP."""

    pre_filter: tuple[PreFilterPlugin, ...]
    skipped_filters: frozenset[str]
    pre_score: tuple[PreScorePlugin, ...]
    skipped_scores: frozenset[str]


class ConcernedPlugins:
    """The plugins of one profile, by shape of pods."""

    def __init__(self, profile: Profile) -> None:
        filters, scores = tuple(profile.pre_filter), tuple(profile.pre_score)
        self.all = Concerned(filters, frozenset(), scores, frozenset())
        """All plugins, for cycles in which each is timed."""
        self._by_shape: dict[PodShape, Concerned] = {}

    def about(self, pod: PodInfo) -> Concerned:
        """The plugins that concern the pod: all of them for the first pod of a shape, which may be the only one."""
        concerned = self._by_shape.get(pod.shape)
        if concerned is None:
            if len(self._by_shape) >= MAX_SHAPES:
                self._by_shape.clear()
            concerned = self._by_shape[pod.shape] = self.all
        elif concerned is self.all:
            concerned = self._by_shape[pod.shape] = self._find(pod)
        return concerned

    def _find(self, pod: PodInfo) -> Concerned:
        filters = tuple(one for one in self.all.pre_filter if _may_reject(one, pod))
        scores = tuple(one for one in self.all.pre_score if _may_rank(one, pod))
        return Concerned(
            filters,
            frozenset(one.name for one in self.all.pre_filter if one not in filters),
            scores,
            frozenset(one.name for one in self.all.pre_score if one not in scores),
        )


def _may_reject(plugin: PreFilterPlugin, pod: PodInfo) -> bool:
    return not has_own(plugin, "may_reject", "pre_filter") or plugin.may_reject(pod)


def _may_rank(plugin: PreScorePlugin, pod: PodInfo) -> bool:
    return not has_own(plugin, "may_rank", "pre_score") or plugin.may_rank(pod)
