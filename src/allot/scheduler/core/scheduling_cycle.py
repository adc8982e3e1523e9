"""The scheduling cycle: which node a pod gets, or why none.

    pre_filter ─► filter, node by node ─► pre_score ─► score, normalize ─► the best node
        │ rejected        │ nobody fits
        └────────┬────────┘
                 ▼
            NoNode(why)

Nothing is awaited, so the cluster stands still meanwhile. What plugins say about a node by looking at nothing
but the node and the pod's shape is remembered until the node changes: the next pod of the same shape costs a
look-up per node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from allot.scheduler.core.equivalence_cache import Judge, Verdict, VerdictTable
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import UNLIMITED, DecisionTime
from allot.scheduler.framework.durations import (
    FILTER,
    PRE_FILTER,
    PRE_SCORE,
    SCORE,
    Durations,
    PluginSamples,
)
from allot.scheduler.framework.node_statuses import Refusals, refusals
from allot.scheduler.framework.plugins import FilterPlugin, ScorePlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Code, Status, unresolvable
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo

MIN_NODES: Final = 100
"""In clusters smaller than this all nodes are tried."""
MIN_PERCENTAGE: Final = 5
MAX_REMEMBERED_SHAPES: Final = 200
NOT_SELECTED: Final = "node(s) didn't satisfy plugin(s) [{}]"


class Chosen(NamedTuple):
    """The node, and what plugins remember about this cycle."""

    node_name: str
    state: CycleState
    evaluated: int
    feasible: int


class NoNode(NamedTuple):
    """No node takes the pod. `rejected_by` are the plugins that might change their mind."""

    state: CycleState
    statuses: Refusals
    pre_filter_message: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]

    @property
    def is_pending(self) -> bool:
        """Whether all that is missing is under way."""
        return bool(self.pending_on) and self.pending_on == self.rejected_by


class CycleError(NamedTuple):
    """Something went wrong that has nothing to do with whether the pod fits."""

    state: CycleState
    status: Status


Decision = Chosen | NoNode | CycleError


class _Asked(NamedTuple):
    """Which filters are asked about every node, and where the answers of the others are kept."""

    table: VerdictTable
    remembered: Sequence[FilterPlugin]
    asked_anew: Sequence[FilterPlugin]
    remembered_scores: Sequence[ScorePlugin]
    """Scores that rest on the same as the remembered answers, and must be normalized."""


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
        local = [plugin for plugin in profile.score if plugin.scores_locally]
        self._fixed_scores = [plugin for plugin in local if not _normalizes(plugin)]
        self._raw_scores = [plugin for plugin in local if _normalizes(plugin)]
        self._other_scores = [plugin for plugin in profile.score if not plugin.scores_locally]
        self._tables: dict[Hashable, VerdictTable] = {}
        self.evaluations = 0
        """How often a node-local plugin chain was run; for tests that count instead of timing."""

    def decide(self, pod: PodInfo, time: DecisionTime = UNLIMITED) -> Decision:
        """`DeadlineExceededError` if `time` is over and interrupts decisions instead of passing nodes over.

        What was found out about nodes until then is remembered.
        """
        durations = self._durations
        state = CycleState(time, durations.sample())
        began = durations.now()
        allowed = self._pre_filtered(state, pod)
        began = durations.point(PRE_FILTER, _code(allowed), began)
        if not isinstance(allowed, _Allowed):
            return allowed
        asked = self._asked(state, pod)
        table = asked.table
        nominated = self._nominated(state, pod, asked, allowed)
        if nominated is not None:
            durations.point(FILTER, Code.SUCCESS, began)
            return nominated
        is_plain = allowed.names is None and not asked.asked_anew and not self._cluster.nominations
        search = self._by_memory if is_plain else self._one_by_one
        tried = search(state, pod, asked, allowed)
        durations.point(FILTER, _code(tried), began)
        if isinstance(tried, Status):
            return CycleError(state, _wrapped(tried))
        if allowed.names is None and table:
            self._start = (self._start + tried.evaluated) % len(table)
        if not tried.places:
            return self._no_node(state, tried.statuses or table.refusals(), allowed)
        chosen = self._best(state, pod, asked, tried.places)
        return Chosen(chosen.name, state, tried.evaluated, len(tried.places))

    # --- filter ---

    def _pre_filtered(self, state: CycleState, pod: PodInfo) -> _Allowed | NoNode | CycleError:
        names: frozenset[str] | None = None
        narrowed: list[str] = []
        samples = state.samples
        for plugin in self._profile.pre_filter:
            started = samples.now() if samples is not None else 0.0
            status, nodes = plugin.pre_filter(state, pod, self._cluster)
            if samples is not None:
                samples.add(plugin.name, PRE_FILTER, status.code, started)
            if status.is_skip:
                state.skipped_filters.add(plugin.name)
                continue
            if status.code is Code.ERROR:
                return CycleError(state, _prefixed(status, "PreFilter", plugin.name))
            if not status.is_success:
                return self._rejected_at_once(state, status.by(plugin.name))
            if nodes is not None:
                names = nodes if names is None else names & nodes
                narrowed.append(plugin.name)
                if not names:
                    message = NOT_SELECTED.format(" ".join(sorted(narrowed)))
                    return self._rejected_at_once(
                        state, unresolvable(message).by(narrowed[-1]), narrowed
                    )
        return _Allowed(names, tuple(narrowed))

    def _rejected_at_once(
        self, state: CycleState, status: Status, plugins: Iterable[str] = ()
    ) -> NoNode:
        statuses = Refusals((node.name, status) for node in self._cluster.nodes)
        rejected = frozenset(plugins) or frozenset({status.plugin})
        pending = rejected if status.code is Code.PENDING else frozenset()
        return NoNode(state, statuses, status.message, rejected, pending)

    def _by_memory(
        self, state: CycleState, pod: PodInfo, asked: _Asked, _: _Allowed
    ) -> _Tried | Status:
        """All that is to be said about a node can be remembered."""
        table = asked.table
        start = self._start % len(table) if table else 0
        wanted = self._nodes_to_find(state, len(table))
        found = table.find(start, wanted, self._judge(state, pod, asked))
        if isinstance(found, Status):
            return found
        enough = len(found) == wanted and found
        evaluated = (found[-1] - start) % len(table) + 1 if enough else len(table)
        return _Tried(found, evaluated)

    def _one_by_one(
        self, state: CycleState, pod: PodInfo, asked: _Asked, allowed: _Allowed
    ) -> _Tried | Status:
        """Some plugins must be asked anew, some nodes are promised to others, or only some are allowed."""
        table, asked_anew, judge = asked.table, asked.asked_anew, self._judge(state, pod, asked)
        places: Iterable[int] = table.places_from(self._start % len(table) if table else 0)
        total = len(table)
        if allowed.names is not None:
            known = (table.place_of(name) for name in allowed.names)
            places = sorted(place for place in known if place is not None)
            total = len(places)
        wanted = self._nodes_to_find(state, total)
        found: list[int] = []
        statuses: dict[str, Status] = {}
        evaluated = 0
        for evaluated, place in enumerate(places, 1):  # noqa: B007 - used below
            node, status = table.nodes[place], table.at(place, judge).status
            if status is SUCCESS and asked_anew:
                status = self._ask(asked_anew, state, pod, node)
            if status is SUCCESS and self._cluster.nominations:
                status = self._besides_nominated(state, pod, node, asked)
            if status is SUCCESS:
                found.append(place)
                if len(found) >= wanted:
                    break
            elif status.code is Code.ERROR:
                return status
            else:
                statuses[node.name] = status
        return _Tried(found, evaluated, statuses)

    def _judge(self, state: CycleState, pod: PodInfo, asked: _Asked) -> Judge:
        time = state.time

        def judge(node: NodeInfo) -> Verdict:
            if not time.passes_over:
                time.ask()
            self.evaluations += 1
            verdict = Verdict(node.generation, self._ask(asked.remembered, state, pod, node))
            time.remembered()
            return verdict

        return judge

    def _ask(
        self, plugins: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status:
        samples = state.samples
        if samples is not None and samples.filters_left > 0:
            return _ask_timed(samples, plugins, state, pod, node)
        for plugin in plugins:
            status = plugin.filter(state, pod, node)
            if status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return SUCCESS

    def _besides_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, asked: _Asked
    ) -> Status:
        """Whether a node that takes the pod would still do so if those came first who were promised it."""
        others = self._cluster.nominations.before(pod, node.name)
        if not others:
            return SUCCESS
        self.evaluations += 1
        state, node = with_pods(self._profile, state, pod, node, others)
        return self._ask((*asked.remembered, *asked.asked_anew), state, pod, node)

    def _nominated(
        self, state: CycleState, pod: PodInfo, asked: _Asked, allowed: _Allowed
    ) -> Chosen | None:
        """A node that was cleared for this pod is taken without looking at others, if it fits now."""
        name = pod.nominated_node_name
        place = asked.table.place_of(name) if name else None
        if place is None or (allowed.names is not None and name not in allowed.names):
            return None
        node = asked.table.nodes[place]
        if not asked.table.at(place, self._judge(state, pod, asked)).status.is_success:
            return None
        if not self._ask(asked.asked_anew, state, pod, node).is_success:
            return None
        if not self._besides_nominated(state, pod, node, asked).is_success:
            return None
        return Chosen(name, state, 1, 1)

    def _nodes_to_find(self, state: CycleState, total: int) -> int:
        """How many nodes that fit are enough. What the profile says about that holds for every pod."""
        if total < MIN_NODES:
            return total
        percentage = self._profile.percentage_of_nodes_to_score
        if percentage >= 100 or (state.ranks_all_nodes and not percentage):
            return total
        if not percentage:
            percentage = max(50 - total // 125, MIN_PERCENTAGE)
        return max(total * percentage // 100, MIN_NODES)

    def _no_node(
        self, state: CycleState, statuses: Mapping[str, Status], allowed: _Allowed
    ) -> NoNode:
        found = refusals(statuses)
        if allowed.names is None:
            return NoNode(state, found, "", found.plugins, found.pending_on)
        message = NOT_SELECTED.format(" ".join(sorted(allowed.narrowed_by)))
        left_out = unresolvable(message).by(allowed.narrowed_by[-1])
        everywhere = Refusals((node.name, left_out) for node in self._cluster.nodes)
        everywhere.update(found)
        return NoNode(
            state,
            everywhere,
            "",
            found.plugins.union(allowed.narrowed_by),
            found.pending_on,
        )

    # --- score ---

    def _best(
        self, state: CycleState, pod: PodInfo, asked: _Asked, places: Sequence[int]
    ) -> NodeInfo:
        """The node with the highest score; of equals the one that was tried first."""
        table = asked.table
        if len(places) == 1:
            return table.nodes[places[0]]
        nodes = [table.nodes[place] for place in places]
        durations, samples = self._durations, state.samples
        began = started = durations.now()
        for plugin in self._profile.pre_score:
            status = plugin.pre_score(state, pod, self._cluster, nodes)
            if samples is not None:
                samples.add(plugin.name, PRE_SCORE, status.code, started)
                started = samples.now()
            if status.is_skip:
                state.skipped_scores.add(plugin.name)
        began = durations.point(PRE_SCORE, Code.SUCCESS, began)
        found = table.verdicts(places)
        for verdict, node in zip(found, nodes, strict=True):
            if verdict.raw is None:
                self._score(state, pod, node, verdict, asked.remembered_scores)
        totals = [verdict.fixed for verdict in found]
        for index, scorer in enumerate(asked.remembered_scores):
            if scorer.name not in state.skipped_scores:
                started = samples.now() if samples is not None else 0.0
                raw = [verdict.raw[index] for verdict in found if verdict.raw is not None]
                self._add(state, pod, nodes, scorer, raw, totals)
                if samples is not None:
                    samples.add(scorer.name, SCORE, Code.SUCCESS, started)
        for scorer in self._other_scores:
            if scorer not in asked.remembered_scores and scorer.name not in state.skipped_scores:
                started = samples.now() if samples is not None else 0.0
                raw = [scorer.score(state, pod, node) for node in nodes]
                self._add(state, pod, nodes, scorer, raw, totals)
                if samples is not None:
                    samples.add(scorer.name, SCORE, Code.SUCCESS, started)
        durations.point(SCORE, Code.SUCCESS, began)
        return nodes[totals.index(max(totals))]

    def _score(
        self,
        state: CycleState,
        pod: PodInfo,
        node: NodeInfo,
        verdict: Verdict,
        remembered: Sequence[ScorePlugin],
    ) -> None:
        weights = self._profile.weight_by_plugin
        verdict.fixed = sum(
            weights[plugin.name] * plugin.score(state, pod, node)
            for plugin in self._fixed_scores
            if plugin.name not in state.skipped_scores
        )
        verdict.raw = tuple(plugin.score(state, pod, node) for plugin in remembered)

    def _add(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: list[NodeInfo],
        scorer: ScorePlugin,
        scores: list[int],
        totals: list[int],
    ) -> None:
        scorer.normalize(state, pod, nodes, scores)
        weight = self._profile.weight_by_plugin[scorer.name]
        for index, score in enumerate(scores):
            totals[index] += weight * score

    # --- what is remembered ---

    def _asked(self, state: CycleState, pod: PodInfo) -> _Asked:
        """What can be remembered in this cycle, and what was."""
        skipped = state.skipped_filters
        remembered = [plugin for plugin in self._local_filters if plugin.name not in skipped]
        anew: list[FilterPlugin] = []
        key: tuple[Hashable, ...] = (pod.shape,)
        for plugin in self._other_filters:
            if plugin.name in skipped:
                continue
            rests_on = plugin.rests_on(state, pod)
            if rests_on is None:
                anew.append(plugin)
            else:
                remembered.append(plugin)
                key = (*key, plugin.name, rests_on)
        names = {plugin.name for plugin in remembered}
        scores = [plugin for plugin in self._other_scores if plugin.name in names]
        return _Asked(self._table_for(key), remembered, anew, [*self._raw_scores, *scores])

    def _table_for(self, key: Hashable) -> VerdictTable:
        """What was remembered for such pods. What nobody asked for lately is dropped."""
        table = self._tables.pop(key, None)
        self._tables[key] = table = VerdictTable() if table is None else table
        if len(self._tables) > MAX_REMEMBERED_SHAPES:
            del self._tables[next(iter(self._tables))]
        table.catch_up(self._cluster)
        return table


def with_pods(
    profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo, others: Iterable[PodInfo]
) -> tuple[CycleState, NodeInfo]:
    """Copies of the state and the node, as if others ran on the node too."""
    state, node = state.clone(), node.clone()
    for other in others:
        node.add_pod(other.assigned_to(node.name))
        for plugin in profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, other, node)
    return state, node


def _ask_timed(
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


def _code(found: _Allowed | NoNode | CycleError | _Tried | Status) -> Code:
    """How an extension point ended, for metrics."""
    match found:
        case CycleError(_, status) | (Status() as status):
            return status.code
        case NoNode():
            return Code.PENDING if found.is_pending else Code.UNRESOLVABLE
        case _Tried() if not found.places:
            return Code.UNSCHEDULABLE
    return Code.SUCCESS


def _normalizes(plugin: ScorePlugin) -> bool:
    return type(plugin).normalize is not ScorePlugin.normalize


class _Allowed(NamedTuple):
    names: frozenset[str] | None
    narrowed_by: tuple[str, ...]


class _Tried(NamedTuple):
    """The places of nodes that fit, and how many were looked at."""

    places: list[int]
    evaluated: int
    statuses: dict[str, Status] = {}  # noqa: RUF012 - never changed
    """What stands against others; empty if the table knows."""


def _wrapped(status: Status) -> Status:
    """A filter's error, as pods show it."""
    text = f'running "{status.plugin}" filter plugin: {status.message}'
    return Status(Code.ERROR, (text,), status.plugin, status.error)


def _prefixed(status: Status, point: str, plugin: str) -> Status:
    text = f'running {point} plugin "{plugin}": {status.message}'
    return Status(Code.ERROR, (text,), plugin, status.error)
