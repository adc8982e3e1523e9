"""Which plugins of a profile concern a pod: what they say of its shape and of the cluster's traits is remembered."""

from __future__ import annotations

from typing import NamedTuple

from allot.scheduler.framework.plugins import PreFilterPlugin, PreScorePlugin, has_own
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.pods import PodInfo


class Concerned(NamedTuple):
    """The plugins to ask about pods of one shape, and the names of those that would say SKIP."""

    traits: frozenset[Trait] | None
    """Of the cluster in which this is so; None: in any."""
    pre_filter: tuple[PreFilterPlugin, ...]
    skipped_filters: frozenset[str]
    pre_score: tuple[PreScorePlugin, ...]
    skipped_scores: frozenset[str]


class ConcernedPlugins:
    """The plugins of one profile, by shape of pods."""

    def __init__(self, profile: Profile, cluster: ClusterState) -> None:
        self._cluster = cluster
        filters, scores = tuple(profile.pre_filter), tuple(profile.pre_score)
        self.all = Concerned(None, filters, frozenset(), scores, frozenset())
        """All plugins, for cycles in which each is timed."""

    def about(self, pod: PodInfo) -> Concerned:
        """The plugins that concern the pod: all of them for the first pod of a shape, which may be the only one."""
        found = pod.shape.derived
        concerned: Concerned | None = found.get(self)
        if concerned is None:
            concerned = found[self] = self.all
        elif concerned.traits != self._cluster.traits:
            concerned = found[self] = self._find(pod)
        return concerned

    def _find(self, pod: PodInfo) -> Concerned:
        traits = self._cluster.traits
        filters = tuple(one for one in self.all.pre_filter if _may_reject(one, pod, traits))
        scores = tuple(one for one in self.all.pre_score if _may_rank(one, pod, traits))
        return Concerned(
            traits,
            filters,
            frozenset(one.name for one in self.all.pre_filter if one not in filters),
            scores,
            frozenset(one.name for one in self.all.pre_score if one not in scores),
        )


def _may_reject(plugin: PreFilterPlugin, pod: PodInfo, traits: frozenset[Trait]) -> bool:
    if not has_own(plugin, "may_reject", "pre_filter"):
        return True
    return not traits.isdisjoint(plugin.may_reject_with) or plugin.may_reject(pod)


def _may_rank(plugin: PreScorePlugin, pod: PodInfo, traits: frozenset[Trait]) -> bool:
    if not has_own(plugin, "may_rank", "pre_score"):
        return True
    return not traits.isdisjoint(plugin.may_rank_with) or plugin.may_rank(pod)
