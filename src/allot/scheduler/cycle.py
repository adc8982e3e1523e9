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

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import FilterPlugin, ScorePlugin
from allot.scheduler.framework.status import SUCCESS, Code, Status, unresolvable
from allot.scheduler.profiles import Profile
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
    statuses: Mapping[str, Status]
    pre_filter_message: str
    rejected_by: frozenset[str]
    pending_on: frozenset[str]


class CycleError(NamedTuple):
    """Something went wrong that has nothing to do with whether the pod fits."""

    state: CycleState
    status: Status


Decision = Chosen | NoNode | CycleError


class _Verdict:
    """What plugins say about one node at one generation, as far as it can be remembered."""

    __slots__ = ("fixed", "generation", "raw", "status")

    def __init__(self, generation: int, status: Status) -> None:
        self.generation = generation
        self.status = status
        self.fixed = 0
        """The weighted sum of the scores that do not depend on other nodes."""
        self.raw: tuple[int, ...] | None = None
        """Scores that must be normalized among all nodes; None until somebody asks."""


Verdicts = dict[str, _Verdict]


class _Asked(NamedTuple):
    """Which filters are asked about every node, and where the answers of the others are kept."""

    verdicts: Verdicts
    remembered: Sequence[FilterPlugin]
    asked_anew: Sequence[FilterPlugin]


class SchedulingCycle:
    """Decides for the pods of one profile."""

    def __init__(self, profile: Profile, cluster: ClusterState) -> None:
        self._profile = profile
        self._cluster = cluster
        self._start = 0
        self._local_filters = [plugin for plugin in profile.filter if plugin.filters_locally]
        self._other_filters = [plugin for plugin in profile.filter if not plugin.filters_locally]
        local = [plugin for plugin in profile.score if plugin.scores_locally]
        self._fixed_scores = [plugin for plugin in local if not _normalizes(plugin)]
        self._raw_scores = [plugin for plugin in local if _normalizes(plugin)]
        self._other_scores = [plugin for plugin in profile.score if not plugin.scores_locally]
        self._verdicts: dict[Hashable, Verdicts] = {}
        self.evaluations = 0
        """How often a node-local plugin chain was run; for tests that count instead of timing."""

    def decide(self, pod: PodInfo) -> Decision:
        state = CycleState()
        allowed = self._pre_filtered(state, pod)
        if not isinstance(allowed, _Allowed):
            return allowed
        nodes = self._cluster.nodes
        if allowed.names is not None:
            nodes = [node for node in nodes if node.name in allowed.names]
        feasible: list[NodeInfo] = []
        statuses: dict[str, Status] = {}
        asked = self._asked(state, pod)
        nominated = self._nominated(state, pod, nodes, asked)
        if nominated is not None:
            return nominated
        tried = self._rotated(nodes, allowed.names is None)
        wanted = self._nodes_to_find(len(tried))
        evaluated = 0
        verdicts = asked.verdicts
        for node in tried:
            evaluated += 1
            verdict = verdicts.get(node.name)
            if verdict is None or verdict.generation != node.generation:
                verdict = self._verdict(state, pod, node, asked)
            status = verdict.status
            if asked.asked_anew and status is SUCCESS:
                status = self._ask(asked.asked_anew, state, pod, node)
            if status.code is Code.SUCCESS:
                feasible.append(node)
                if len(feasible) >= wanted:
                    break
            elif status.code is Code.ERROR:
                return CycleError(state, _wrapped(status))
            else:
                statuses[node.name] = status
        if allowed.names is None and nodes:
            self._start = (self._start + evaluated) % len(nodes)
        if not feasible:
            return self._no_node(state, statuses, allowed)
        chosen = self._best(state, pod, feasible, verdicts)
        return Chosen(chosen.name, state, evaluated, len(feasible))

    # --- filter ---

    def _pre_filtered(self, state: CycleState, pod: PodInfo) -> _Allowed | NoNode | CycleError:
        names: frozenset[str] | None = None
        narrowed: list[str] = []
        for plugin in self._profile.pre_filter:
            status, nodes = plugin.pre_filter(state, pod, self._cluster)
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
        statuses = {node.name: status for node in self._cluster.nodes}
        rejected = frozenset(plugins) or frozenset({status.plugin})
        pending = rejected if status.code is Code.PENDING else frozenset()
        return NoNode(state, statuses, status.message, rejected, pending)

    def _verdict(self, state: CycleState, pod: PodInfo, node: NodeInfo, asked: _Asked) -> _Verdict:
        status = self._ask(asked.remembered, state, pod, node)
        verdict = _Verdict(node.generation, status)
        if status.code is not Code.ERROR:
            asked.verdicts[node.name] = verdict
        self.evaluations += 1
        return verdict

    def _ask(
        self, plugins: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status:
        for plugin in plugins:
            status = plugin.filter(state, pod, node)
            if status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return SUCCESS

    def _nominated(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: list[NodeInfo],
        asked: _Asked,
    ) -> Chosen | None:
        """A node that was cleared for this pod is taken without looking at others, if it fits now."""
        name = pod.nominated_node_name
        if not name:
            return None
        node = next((node for node in nodes if node.name == name), None)
        if node is None or not self._verdict(state, pod, node, asked).status.is_success:
            return None
        if not self._ask(asked.asked_anew, state, pod, node).is_success:
            return None
        return Chosen(name, state, 1, 1)

    def _rotated(self, nodes: list[NodeInfo], rotate: bool) -> list[NodeInfo]:
        """The nodes in the order they are tried: from where the last cycle stopped."""
        start = self._start % len(nodes) if rotate and nodes else 0
        return nodes[start:] + nodes[:start] if start else nodes

    def _nodes_to_find(self, total: int) -> int:
        """How many nodes that fit are enough."""
        if total < MIN_NODES:
            return total
        percentage = self._profile.percentage_of_nodes_to_score
        if percentage >= 100:
            return total
        if not percentage:
            percentage = max(50 - total // 125, MIN_PERCENTAGE)
        return max(total * percentage // 100, MIN_NODES)

    def _no_node(self, state: CycleState, statuses: dict[str, Status], allowed: _Allowed) -> NoNode:
        rejected = {status.plugin for status in statuses.values()}
        pending = {s.plugin for s in statuses.values() if s.code is Code.PENDING}
        if allowed.names is not None:
            message = NOT_SELECTED.format(" ".join(sorted(allowed.narrowed_by)))
            left_out = unresolvable(message).by(allowed.narrowed_by[-1])
            for node in self._cluster.nodes:
                statuses.setdefault(node.name, left_out)
            rejected.update(allowed.narrowed_by)
        return NoNode(state, statuses, "", frozenset(rejected), frozenset(pending))

    # --- score ---

    def _best(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: list[NodeInfo],
        verdicts: Verdicts,
    ) -> NodeInfo:
        """The node with the highest score; of equals the one that was tried first."""
        if len(nodes) == 1:
            return nodes[0]
        for plugin in self._profile.pre_score:
            if plugin.pre_score(state, pod, self._cluster, nodes).is_skip:
                state.skipped_scores.add(plugin.name)
        found = [self._scored(state, pod, node, verdicts) for node in nodes]
        totals = [verdict.fixed for verdict in found]
        for index, scorer in enumerate(self._raw_scores):
            if scorer.name not in state.skipped_scores:
                raw = [verdict.raw[index] for verdict in found if verdict.raw is not None]
                self._add(state, pod, nodes, scorer, raw, totals)
        for scorer in self._other_scores:
            if scorer.name not in state.skipped_scores:
                raw = [scorer.score(state, pod, node) for node in nodes]
                self._add(state, pod, nodes, scorer, raw, totals)
        return nodes[totals.index(max(totals))]

    def _scored(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, verdicts: Verdicts
    ) -> _Verdict:
        verdict = verdicts[node.name]
        if verdict.raw is None:
            weights = self._profile.weight_by_plugin
            verdict.fixed = sum(
                weights[plugin.name] * plugin.score(state, pod, node)
                for plugin in self._fixed_scores
                if plugin.name not in state.skipped_scores
            )
            verdict.raw = tuple(plugin.score(state, pod, node) for plugin in self._raw_scores)
        return verdict

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
        return _Asked(self._verdicts_for(key), remembered, anew)

    def _verdicts_for(self, key: Hashable) -> Verdicts:
        """What was remembered for such pods. What nobody asked for lately is dropped."""
        found = self._verdicts.pop(key, None)
        self._verdicts[key] = found = {} if found is None else found
        if len(self._verdicts) > MAX_REMEMBERED_SHAPES:
            del self._verdicts[next(iter(self._verdicts))]
        if len(found) > 2 * len(self._cluster) + MIN_NODES:
            found.clear()  # mostly nodes that are gone
        return found


def _normalizes(plugin: ScorePlugin) -> bool:
    return type(plugin).normalize is not ScorePlugin.normalize


class _Allowed(NamedTuple):
    names: frozenset[str] | None
    narrowed_by: tuple[str, ...]


def _wrapped(status: Status) -> Status:
    """A filter's error, as pods show it."""
    text = f'running "{status.plugin}" filter plugin: {status.message}'
    return Status(Code.ERROR, (text,), status.plugin, status.error)


def _prefixed(status: Status, point: str, plugin: str) -> Status:
    text = f'running {point} plugin "{plugin}": {status.message}'
    return Status(Code.ERROR, (text,), plugin, status.error)
