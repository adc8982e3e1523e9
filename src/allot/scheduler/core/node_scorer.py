"""Scoring: the feasible node with the highest sum of weighted scores.

Raw scores that depend only on the node and the pod's equivalence class are cached with the filter results, unless no
pod of the class has needed them. Plugins that do not normalize contribute to one cached sum per node. Where all nodes
with scores are ranked by cached scores alone, nodes with equal scores are ranked together: the cost is that of the
different scores, not of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import NamedTuple

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


class _Plan(NamedTuple):
    """Which scores of a pod count, by the plugins that it skips."""

    skipped: frozenset[str]
    cached: Sequence[ScorePlugin]
    """Plugins whose raw scores are cached, for those of them that do not skip."""
    fixed: Sequence[tuple[ScorePlugin, int]]
    """Plugins that do not normalize, with their weights."""
    normalized: Sequence[tuple[int, ScorePlugin]]
    """Plugins whose cached raw scores are normalized, with their place among those."""
    needed: frozenset[str]
    """The names of these."""
    uncached: Sequence[ScorePlugin]
    ranks_groups: bool
    """Whether a node's rank depends on nothing but its cached scores and which scores others have."""


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
        self._last_plan: _Plan | None = None
        """Most pods are like the one before."""

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
        count = len(indexes)
        if count == 1:
            return cache.nodes[indexes[0]]
        nodes = LazySequence(count, lambda: cache.nodes_at(indexes))
        durations, samples = self._durations, state.samples
        began = started = durations.now()
        skipped = state.skipped_scores
        skipped |= concerned.skipped_scores
        for plugin in concerned.pre_score:
            status = plugin.pre_score(state, pod, self._cluster, nodes)
            if samples is not None:
                samples.add(plugin.name, PRE_SCORE, status.code, started)
                started = samples.now()
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
        began = durations.point(PRE_SCORE, Code.SUCCESS, began)
        plan = self._plan(skipped, cached_scores)
        cache.keep_scores_of(plan.needed)
        self._score(state, pod, cache, cache.unscored(indexes, start), plan)
        if plan.ranks_groups and cache.groups.nodes == count:
            best = self._best_of_groups(state, pod, cache, plan, start)
        else:
            best = self._best_of_nodes(state, pod, cache, plan, indexes, nodes)
        durations.point(SCORE, Code.SUCCESS, began)
        return best

    def _plan(self, skipped: set[str], cached: Sequence[ScorePlugin]) -> _Plan:
        last = self._last_plan
        if last is not None and last.cached is cached and last.skipped == skipped:
            return last
        weights = self._profile.weight_by_plugin
        normalized = [each for each in enumerate(cached) if each[1].name not in skipped]
        uncached = [
            plugin
            for plugin in self.other_scores
            if plugin not in cached and plugin.name not in skipped
        ]
        self._last_plan = plan = _Plan(
            frozenset(skipped),
            cached,
            [(each, weights[each.name]) for each in self._fixed_scores if each.name not in skipped],
            normalized,
            frozenset(plugin.name for _, plugin in normalized),
            uncached,
            not uncached and not any(plugin in self._normalizes_nodes for _, plugin in normalized),
        )
        return plan

    def _best_of_groups(
        self, state: CycleState, pod: PodInfo, cache: EquivalenceClassCache, plan: _Plan, start: int
    ) -> NodeInfo:
        groups = cache.groups.scores()
        totals = self._with_cached(
            state,
            pod,
            (),
            plan,
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
        plan: _Plan,
        indexes: Sequence[int],
        nodes: Sequence[NodeInfo],
    ) -> NodeInfo:
        samples = state.samples
        totals = self._with_cached(
            state,
            pod,
            nodes,
            plan,
            lambda number: cache.raw_scores(indexes, number),
            cache.fixed_scores(indexes),
        )
        for scorer in plan.uncached:
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
        plan: _Plan,
        raw_scores: Callable[[int], list[int]],
        totals: list[int],
    ) -> list[int]:
        """The totals with the normalized scores of the plugins whose raw scores are cached."""
        samples = state.samples
        for number, scorer in plan.normalized:
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
        plan: _Plan,
    ) -> None:
        """Score these nodes; scores are cached, so that the next slice continues if the time is over."""
        time, needed = state.time, cache.scored_by
        for index in indexes:
            if not time.skips_slow_nodes:
                time.check()
            node, fixed = cache.nodes[index], 0
            for plugin, weight in plan.fixed:
                fixed += weight * plugin.score(state, pod, node)
            raw: Iterable[int] = ()
            if needed:
                raw = [
                    plugin.score(state, pod, node) if plugin.name in needed else 0
                    for plugin in plan.cached
                ]
            cache.put_scores(index, fixed, tuple(raw))
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
