"""The scheduling cycle: which node a pod gets, or why none.

    pre_filter ─► filter, node by node ─► pre_score ─► score, normalize ─► the best node
        │ rejected        │ no node fits
        └────────┬────────┘
                 ▼
            NoNode(why)

Nothing is awaited, so the cluster state does not change during a cycle. Results that depend only on the node and on the
pod's equivalence class are cached until the node changes: the next pod of the class costs a look-up per node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from allot.deadline import DeadlineExceededError
from allot.scheduler.core.concerned_plugins import Concerned, ConcernedPlugins
from allot.scheduler.core.decisions import Chosen, CycleError, Decision, NoNode
from allot.scheduler.core.equivalence_cache import EquivalenceClassCache, EvaluateNode, NodeResult
from allot.scheduler.core.node_scorer import NodeScorer
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.dry_run import with_added_pods
from allot.scheduler.framework.durations import (
    FILTER,
    PRE_FILTER,
    Durations,
    PluginSamples,
)
from allot.scheduler.framework.node_statuses import NodeStatuses, node_statuses
from allot.scheduler.framework.plugins import PRE_FILTER_SUCCESS, FilterPlugin, ScorePlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Code, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MIN_NODES: Final = 100
"""In smaller clusters all nodes are tried."""
MIN_PERCENTAGE: Final = 5
MAX_EQUIVALENCE_CLASSES: Final = 200
NOT_SELECTED: Final = "node(s) didn't satisfy plugin(s) [{}]"


class _Filters(NamedTuple):
    """The filters of one cycle: those with cached results, and those that run on every node."""

    cache: EquivalenceClassCache
    cached: Sequence[FilterPlugin]
    uncached: Sequence[FilterPlugin]
    cached_scores: Sequence[ScorePlugin]
    """Score plugins whose raw scores are cached with the filter results."""


class _Split(NamedTuple):
    """Which filters are cached, by those that a pod skips and those that cannot be cached for it."""

    skipped: frozenset[str]
    others: Sequence[FilterPlugin]
    """Those that do not filter locally, and are not skipped."""
    uncached: Sequence[FilterPlugin]
    cached: Sequence[FilterPlugin]
    cached_scores: Sequence[ScorePlugin]


class SchedulingCycle:
    """Decides for the pods of one profile."""

    def __init__(
        self, profile: Profile, cluster: ClusterState, durations: Durations | None = None
    ) -> None:
        self._durations = durations or Durations()
        self._profile = profile
        self._cluster = cluster
        self._start = 0
        self._local_filters = [plugin for plugin in profile.filter if plugin.filters_locally]
        self._other_filters = [plugin for plugin in profile.filter if not plugin.filters_locally]
        self._concerned = ConcernedPlugins(profile, cluster)
        self._scorer = NodeScorer(profile, cluster, self._durations)
        self._caches: dict[Hashable, EquivalenceClassCache] = {}
        self._last_split: _Split | None = None
        """Most pods are like the one before."""
        self.evaluations = 0
        """How often the filters ran on a node; tests count it."""

    def decide(self, pod: PodInfo, time: DecisionTime = UNLIMITED) -> Decision:
        """The decision about a pod. `DeadlineExceededError` if `time` is over and does not skip slow nodes.

        Results of nodes up to that point are cached.
        """
        durations = self._durations
        state = CycleState(time, durations.sample())
        began = durations.now()
        concerned = self._concerned.about(pod) if state.samples is None else self._concerned.all
        allowed = self._run_pre_filter(state, pod, concerned)
        if not isinstance(allowed, _PreFilterNodes):
            durations.point(PRE_FILTER, _code(allowed), began)
            return allowed
        began = durations.point(PRE_FILTER, Code.SUCCESS, began)
        filters = self._split_filters(state, pod)
        cache = filters.cache
        nominated = self._nominated(state, pod, filters, allowed)
        if nominated is not None:
            durations.point(FILTER, Code.SUCCESS, began)
            return nominated
        is_plain = allowed.names is None and not filters.uncached and not self._cluster.nominations
        search = self._find_cached if is_plain else self._find_uncached
        tried = search(state, pod, filters, allowed)
        durations.point(FILTER, _code(tried), began)
        if isinstance(tried, Status):
            return CycleError(state, _wrapped(tried))
        before = self._start
        if allowed.names is None and (total := len(cache.nodes)):
            self._start = (self._start + tried.evaluated) % total
        if not tried.indexes:
            return self._unschedulable(state, tried.statuses or cache.node_statuses(), allowed)
        try:
            chosen = self._scorer.best(
                state, pod, concerned, cache, filters.cached_scores, tried.indexes, tried.start
            )
        except DeadlineExceededError:
            self._start = before  # so that the next slice finds the same nodes
            raise
        return Chosen(chosen.name, state, tried.evaluated, len(tried.indexes))

    def decide_on(self, pod: PodInfo, node_name: str) -> Chosen | Status | None:
        """The decision if there were only this node, without scores; the status that rejects it.

        None: other nodes matter, because a filter that is neither local nor cached takes part.
        """
        state = CycleState(UNLIMITED, self._durations.sample())
        allowed = self._run_pre_filter(state, pod, self._concerned.all)
        if isinstance(allowed, CycleError):
            return allowed.status
        if isinstance(allowed, NoNode):
            return unresolvable(allowed.pre_filter_message)
        filters = self._split_filters(state, pod)
        index = filters.cache.index_of(node_name)
        if filters.uncached or index is None or self._cluster.nominations:
            return None
        if allowed.names is not None and node_name not in allowed.names:
            return unresolvable(NOT_SELECTED.format(" ".join(sorted(allowed.narrowed_by))))
        status = filters.cache.at(index, self._evaluate_node(state, pod, filters)).status
        return Chosen(node_name, state, 1, 1) if status.is_success else status

    # --- filter ---

    def _run_pre_filter(
        self, state: CycleState, pod: PodInfo, concerned: Concerned
    ) -> _PreFilterNodes | NoNode | CycleError:
        names: frozenset[str] | None = None
        narrowed: list[str] = []
        samples, skipped, cluster = state.samples, state.skipped_filters, self._cluster
        skipped |= concerned.skipped_filters
        for plugin in concerned.pre_filter:
            started = samples.now() if samples is not None else 0.0
            status, nodes = answer = plugin.pre_filter(state, pod, cluster)
            code = status.code
            if samples is not None:
                samples.add(plugin.name, PRE_FILTER, code, started)
            if answer is PRE_FILTER_SUCCESS:
                continue
            if code is Code.SKIP:
                skipped.add(plugin.name)
                continue
            if code is not Code.SUCCESS:
                if code is Code.ERROR:
                    return CycleError(state, _prefixed(status, "PreFilter", plugin.name))
                return self._rejected_by_pre_filter(state, status.by(plugin.name))
            if nodes is not None:
                names = nodes if names is None else names & nodes
                narrowed.append(plugin.name)
                if not names:
                    message = NOT_SELECTED.format(" ".join(sorted(narrowed)))
                    return self._rejected_by_pre_filter(
                        state, unresolvable(message).by(narrowed[-1]), narrowed
                    )
        return _PreFilterNodes(names, tuple(narrowed)) if narrowed else _ALL_NODES

    def _rejected_by_pre_filter(
        self, state: CycleState, status: Status, plugins: Iterable[str] = ()
    ) -> NoNode:
        statuses = NodeStatuses((node.name, status) for node in self._cluster.nodes)
        rejected = frozenset(plugins) or frozenset({status.plugin})
        pending = rejected if status.code is Code.PENDING else frozenset()
        return NoNode(state, statuses, status.message, rejected, pending)

    def _find_cached(
        self, state: CycleState, pod: PodInfo, filters: _Filters, _: _PreFilterNodes
    ) -> _FeasibleNodes | Status:
        """Search where all filters have cached results."""
        cache = filters.cache
        total = len(cache.nodes)
        start = self._start % total if total else 0
        wanted = self._nodes_to_find(state, total)
        found = cache.find(start, wanted, self._evaluate_node(state, pod, filters))
        if isinstance(found, Status):
            return found
        stopped = len(found) == wanted < total
        evaluated = (found[-1] - start) % total + 1 if stopped else total
        return _FeasibleNodes(found, start, evaluated)

    def _find_uncached(
        self, state: CycleState, pod: PodInfo, filters: _Filters, allowed: _PreFilterNodes
    ) -> _FeasibleNodes | Status:
        """Search where some filters run on every node, pods are nominated, or pre_filter selected nodes."""
        cache, uncached, evaluate = (
            filters.cache,
            filters.uncached,
            self._evaluate_node(state, pod, filters),
        )
        start = self._start % len(cache) if cache else 0
        indexes: Iterable[int] = cache.indexes_from(start)
        total = len(cache)
        if allowed.names is not None:
            start = 0
            known = (cache.index_of(name) for name in allowed.names)
            indexes = sorted(index for index in known if index is not None)
            total = len(indexes)
        wanted = self._nodes_to_find(state, total)
        found: list[int] = []
        statuses: dict[str, Status] = {}
        evaluated = 0
        for evaluated, index in enumerate(indexes, 1):  # noqa: B007 - used below
            node, status = cache.nodes[index], cache.at(index, evaluate).status
            if status is SUCCESS and uncached:
                status = self._run_filters(uncached, state, pod, node)
            if status is SUCCESS and self._cluster.nominations:
                status = self._filter_with_nominated_pods(state, pod, node, filters)
            if status is SUCCESS:
                found.append(index)
                if len(found) >= wanted:
                    break
            elif status.code is Code.ERROR:
                return status
            else:
                statuses[node.name] = status
        return _FeasibleNodes(found, start, evaluated, statuses)

    def _evaluate_node(self, state: CycleState, pod: PodInfo, filters: _Filters) -> EvaluateNode:
        time = state.time

        def evaluate(node: NodeInfo) -> NodeResult:
            if not time.skips_slow_nodes:
                time.check()
            self.evaluations += 1
            result = NodeResult(
                node.generation, self._run_filters(filters.cached, state, pod, node)
            )
            time.result_cached()
            return result

        return evaluate

    def _run_filters(
        self, plugins: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status:
        samples = state.samples
        if samples is not None and samples.filters_left > 0:
            return _run_filters_timed(samples, plugins, state, pod, node)
        for plugin in plugins:
            status = plugin.filter(state, pod, node)
            if status is not SUCCESS and status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return SUCCESS

    def _filter_with_nominated_pods(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, filters: _Filters
    ) -> Status:
        """Whether the pod also fits with the pods that are nominated to the node."""
        others = self._cluster.nominations.before(pod, node.name)
        if not others:
            return SUCCESS
        self.evaluations += 1
        state, node = with_added_pods(self._profile, state, pod, node, others)
        return self._run_filters((*filters.cached, *filters.uncached), state, pod, node)

    def _nominated(
        self, state: CycleState, pod: PodInfo, filters: _Filters, allowed: _PreFilterNodes
    ) -> Chosen | None:
        """The pod's nominated node, if it fits; then no other node is tried."""
        name = pod.nominated_node_name
        index = filters.cache.index_of(name) if name else None
        if index is None or (allowed.names is not None and name not in allowed.names):
            return None
        node = filters.cache.nodes[index]
        if not filters.cache.at(index, self._evaluate_node(state, pod, filters)).status.is_success:
            return None
        if not self._run_filters(filters.uncached, state, pod, node).is_success:
            return None
        if not self._filter_with_nominated_pods(state, pod, node, filters).is_success:
            return None
        return Chosen(name, state, 1, 1)

    def _nodes_to_find(self, state: CycleState, total: int) -> int:
        """How many feasible nodes end the search; the profile's percentage applies to every pod."""
        if total < MIN_NODES:
            return total
        percentage = self._profile.percentage_of_nodes_to_score
        if percentage >= 100 or (state.ranks_all_nodes and not percentage):
            return total
        if not percentage:
            percentage = max(50 - total // 125, MIN_PERCENTAGE)
        return max(total * percentage // 100, MIN_NODES)

    def _unschedulable(
        self, state: CycleState, statuses: Mapping[str, Status], allowed: _PreFilterNodes
    ) -> NoNode:
        found = node_statuses(statuses)
        if allowed.names is None:
            return NoNode(state, found, "", found.plugins, found.pending_on)
        message = NOT_SELECTED.format(" ".join(sorted(allowed.narrowed_by)))
        left_out = unresolvable(message).by(allowed.narrowed_by[-1])
        everywhere = NodeStatuses((node.name, left_out) for node in self._cluster.nodes)
        everywhere.update(found)
        return NoNode(
            state,
            everywhere,
            "",
            found.plugins.union(allowed.narrowed_by),
            found.pending_on,
        )

    # --- caching ---

    def _split_filters(self, state: CycleState, pod: PodInfo) -> _Filters:
        """Which filters have cached results in this cycle, and the cache of the pod's class."""
        skipped = state.skipped_filters
        uncached: list[FilterPlugin] = []
        key: tuple[Hashable, ...] = (pod.equivalence_class,)
        last = self._last_split
        if last is not None and last.skipped == skipped:
            others = last.others
        else:
            others = [plugin for plugin in self._other_filters if plugin.name not in skipped]
        for plugin in others:
            equivalence_key = plugin.equivalence_key(state, pod)
            if equivalence_key is None:
                uncached.append(plugin)
            else:
                key = (*key, plugin.name, equivalence_key)
        cache = self._cache_for(key)
        if last is None or last.others is not others or last.uncached != uncached:
            last = self._last_split = self._split(frozenset(skipped), others, uncached)
        return _Filters(cache, last.cached, uncached, last.cached_scores)

    def _split(
        self,
        skipped: frozenset[str],
        others: Sequence[FilterPlugin],
        uncached: Sequence[FilterPlugin],
    ) -> _Split:
        cached = [plugin for plugin in self._local_filters if plugin.name not in skipped]
        cached += [plugin for plugin in others if plugin not in uncached]
        names = {plugin.name for plugin in cached}
        scores = [
            plugin
            for plugin in self._scorer.other_scores
            if plugin.name in names or plugin.scores_by_filter in names
        ]
        return _Split(skipped, others, uncached, cached, [*self._scorer.raw_scores, *scores])

    def _cache_for(self, key: Hashable) -> EquivalenceClassCache:
        """The cache of an equivalence class, synced. The least recently used one is dropped."""
        cache = self._caches.pop(key, None)
        self._caches[key] = cache = EquivalenceClassCache() if cache is None else cache
        if len(self._caches) > MAX_EQUIVALENCE_CLASSES:
            del self._caches[next(iter(self._caches))]
        cache.sync(self._cluster)
        return cache


def _run_filters_timed(
    samples: PluginSamples,
    plugins: Sequence[FilterPlugin],
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
) -> Status:
    for plugin in plugins:
        samples.filters_left -= 1
        started = samples.now()
        status = plugin.filter(state, pod, node)
        samples.add(plugin.name, FILTER, status.code, started)
        if status.code is not Code.SUCCESS:
            return status.by(plugin.name)
    return SUCCESS


def _code(found: NoNode | CycleError | _FeasibleNodes | Status) -> Code:
    """The status code of an extension point, for metrics."""
    match found:
        case _FeasibleNodes():
            return Code.SUCCESS if found.indexes else Code.UNSCHEDULABLE
        case NoNode():
            return Code.PENDING if found.is_pending else Code.UNRESOLVABLE
        case CycleError():
            return found.status.code
        case Status():
            return found.code


class _PreFilterNodes(NamedTuple):
    names: frozenset[str] | None
    narrowed_by: tuple[str, ...]


_ALL_NODES: Final = _PreFilterNodes(None, ())


class _FeasibleNodes(NamedTuple):
    """The indexes of nodes that fit, from `start` on, wrapping around, and how many were evaluated."""

    indexes: Sequence[int]
    start: int
    evaluated: int
    statuses: dict[str, Status] = {}  # noqa: RUF012 - never changed
    """The statuses of the other nodes; empty if the cache has them."""


def _wrapped(status: Status) -> Status:
    """A filter's error with the text of kube-scheduler."""
    text = f'running "{status.plugin}" filter plugin: {status.message}'
    return Status(Code.ERROR, (text,), status.plugin, status.error)


def _prefixed(status: Status, point: str, plugin: str) -> Status:
    text = f'running {point} plugin "{plugin}": {status.message}'
    return Status(Code.ERROR, (text,), plugin, status.error)
