"""Scoring: the feasible node with the highest sum of weighted scores.

Raw scores that depend only on the node and the pod's equivalence class are cached with the filter results. Plugins that
do not normalize contribute to one cached sum per node. Where all nodes with scores are ranked by cached scores alone,
nodes with equal scores are ranked together: the cost is that of the different scores, not of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add

from allot.scheduler.core.concerned_plugins import Concerned
from allot.scheduler.core.equivalence_cache import EquivalenceClassCache
from allot.scheduler.core.lazy_sequence import LazySequence
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.durations import PRE_SCORE, SCORE, Durations
from allot.scheduler.framework.plugins import ScorePlugin, has_own
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Code
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class NodeScorer:
    """Chooses the best of several feasible nodes, for the pods of one profile."""

    def __init__(self, profile: Profile, cluster: ClusterState, durations: Durations) -> None:
        self._profile = profile
        self._cluster = cluster
        self._durations = durations
        local = [plugin for plugin in profile.score if plugin.scores_locally]
        self._fixed_scores = [plugin for plugin in local if not _normalizes(plugin)]
        self.raw_scores = [plugin for plugin in local if _normalizes(plugin)]
        """Plugins whose raw scores are cached for all pods."""
        self.other_scores = [plugin for plugin in profile.score if not plugin.scores_locally]
        """Plugins whose raw scores are cached if the results of their filter, or of `scores_by_filter`, are."""
        self._by_value = {plugin for plugin in profile.score if _normalizes_by_value(plugin)}
        self._normalizes_nodes = (
            frozenset(plugin for plugin in profile.score if _normalizes(plugin)) - self._by_value
        )
        """Plugins whose normalized scores depend on the nodes."""

    def best(
        self,
        state: CycleState,
        pod: PodInfo,
        concerned: Concerned,
        cache: EquivalenceClassCache,
        cached_scores: Sequence[ScorePlugin],
        indexes: Sequence[int],
        start: int,
    ) -> NodeInfo:
        """The node with the highest score; among equals the one that was tried first, from `start` on."""
        if len(indexes) == 1:
            return cache.nodes[indexes[0]]
        nodes = LazySequence(len(indexes), lambda: cache.nodes_at(indexes))
        durations, samples = self._durations, state.samples
        began = started = durations.now()
        state.skipped_scores |= concerned.skipped_scores
        for plugin in concerned.pre_score:
            status = plugin.pre_score(state, pod, self._cluster, nodes)
            if samples is not None:
                samples.add(plugin.name, PRE_SCORE, status.code, started)
                started = samples.now()
            if status.code is Code.SKIP:
                state.skipped_scores.add(plugin.name)
        began = durations.point(PRE_SCORE, Code.SUCCESS, began)
        self._score(state, pod, cache, cache.unscored(indexes, start), cached_scores)
        if cache.groups.nodes == len(indexes) and self._ranks_groups(state, cached_scores):
            best = self._best_of_groups(state, pod, cache, cached_scores, start)
        else:
            best = self._best_of_nodes(state, pod, cache, cached_scores, indexes, nodes)
        durations.point(SCORE, Code.SUCCESS, began)
        return best

    def _ranks_groups(self, state: CycleState, cached_scores: Sequence[ScorePlugin]) -> bool:
        """Whether a node's rank depends on nothing but its cached scores and which scores others have."""
        skipped = state.skipped_scores
        for plugin in self.other_scores:
            if plugin not in cached_scores and plugin.name not in skipped:
                return False
        return all(
            plugin.name in skipped for plugin in cached_scores if plugin in self._normalizes_nodes
        )

    def _best_of_groups(
        self,
        state: CycleState,
        pod: PodInfo,
        cache: EquivalenceClassCache,
        cached_scores: Sequence[ScorePlugin],
        start: int,
    ) -> NodeInfo:
        groups = cache.groups.scores()
        totals = self._with_cached(
            state,
            pod,
            (),
            cached_scores,
            lambda number: [scores.raw[number] for scores in groups],
            [scores.fixed for scores in groups],
        )
        highest = max(totals)
        best = [scores for scores, total in zip(groups, totals, strict=True) if total == highest]
        return cache.nodes[cache.groups.first(best, start)]

    def _best_of_nodes(
        self,
        state: CycleState,
        pod: PodInfo,
        cache: EquivalenceClassCache,
        cached_scores: Sequence[ScorePlugin],
        indexes: Sequence[int],
        nodes: Sequence[NodeInfo],
    ) -> NodeInfo:
        samples = state.samples
        totals = self._with_cached(
            state,
            pod,
            nodes,
            cached_scores,
            lambda number: cache.raw_scores(indexes, number),
            cache.fixed_scores(indexes),
        )
        for scorer in self.other_scores:
            if scorer not in cached_scores and scorer.name not in state.skipped_scores:
                started = samples.now() if samples is not None else 0.0
                raw = [scorer.score(state, pod, node) for node in nodes]
                totals = self._with_weighted(state, pod, nodes, scorer, raw, totals)
                if samples is not None:
                    samples.add(scorer.name, SCORE, Code.SUCCESS, started)
        return nodes[totals.index(max(totals))]

    def _with_cached(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: Sequence[NodeInfo],
        cached_scores: Sequence[ScorePlugin],
        raw_scores: Callable[[int], list[int]],
        totals: list[int],
    ) -> list[int]:
        """The totals with the normalized scores of the plugins whose raw scores are cached."""
        samples = state.samples
        for number, scorer in enumerate(cached_scores):
            if scorer.name not in state.skipped_scores:
                started = samples.now() if samples is not None else 0.0
                raw = raw_scores(number)
                totals = self._with_weighted(state, pod, nodes, scorer, raw, totals)
                if samples is not None:
                    samples.add(scorer.name, SCORE, Code.SUCCESS, started)
        return totals

    def _score(
        self,
        state: CycleState,
        pod: PodInfo,
        cache: EquivalenceClassCache,
        indexes: Iterable[int],
        cached: Sequence[ScorePlugin],
    ) -> None:
        """Score these nodes; scores are cached, so that the next slice continues if the time is over."""
        time, weights = state.time, self._profile.weight_by_plugin
        fixed_scores = [
            (plugin, weights[plugin.name])
            for plugin in self._fixed_scores
            if plugin.name not in state.skipped_scores
        ]
        for index in indexes:
            if not time.skips_slow_nodes:
                time.check()
            node, fixed = cache.nodes[index], 0
            for plugin, weight in fixed_scores:
                fixed += weight * plugin.score(state, pod, node)
            raw = tuple([plugin.score(state, pod, node) for plugin in cached])
            cache.put_scores(index, fixed, raw)
            time.result_cached()

    def _with_weighted(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: Sequence[NodeInfo],
        scorer: ScorePlugin,
        raw: list[int],
        totals: list[int],
    ) -> list[int]:
        """The totals of these nodes with the normalized scores of one plugin; without those that are all the same."""
        weight = self._profile.weight_by_plugin[scorer.name]
        if scorer in self._by_value:
            values = list(set(raw))
            scores = values.copy()
            scorer.normalize(state, pod, (), scores)
            if len(set(scores)) == 1:
                return totals
            weighted = {value: weight * score for value, score in zip(values, scores, strict=True)}
            return list(map(add, totals, map(weighted.__getitem__, raw)))
        scorer.normalize(state, pod, nodes, raw)
        return [total + weight * score for total, score in zip(totals, raw, strict=True)]


def _normalizes(plugin: ScorePlugin) -> bool:
    return type(plugin).normalize is not ScorePlugin.normalize


def _normalizes_by_value(plugin: ScorePlugin) -> bool:
    return plugin.normalizes_by_value and has_own(plugin, "normalizes_by_value", "normalize")
