from __future__ import annotations

import random
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar

import pytest

from allot.deadline import DeadlineExceededError
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.equivalence_cache import EquivalenceClassCache
from allot.scheduler.core.scheduling_cycle import MAX_EQUIVALENCE_CLASSES, SchedulingCycle
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import TimeSlice
from allot.scheduler.framework.plugins import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.scores import scale_to_max
from allot.scheduler.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    failed,
    unresolvable,
    unschedulable,
)
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_request, an_alternative
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_pod_with_claims, a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.state.objects import a_cluster, a_node_facts, a_pod_info

NONE_REFUSED: Mapping[str, Status] = {}


class Refuses(FilterPlugin):
    """Refuses some nodes, and remembers which it was asked about."""

    name: ClassVar[str] = "Refuses"

    def __init__(self, refused: Mapping[str, Status] = NONE_REFUSED) -> None:
        self.refused = dict(refused)
        self.asked: list[str] = []

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked.append(node.name)
        return self.refused.get(node.name, SUCCESS)


class Elsewhere(Refuses):
    """The same, by looking at other things than the node."""

    name: ClassVar[str] = "Elsewhere"
    filters_locally: ClassVar[bool] = False

    def __init__(
        self, refused: Mapping[str, Status] = NONE_REFUSED, equivalence_key: Hashable | None = None
    ) -> None:
        super().__init__(refused)
        self.rest = equivalence_key

    def equivalence_key(self, state: CycleState, pod: PodInfo) -> Hashable | None:
        return self.rest


class Before(PreFilterPlugin):
    """Says the same of every pod."""

    name: ClassVar[str] = "Before"

    def __init__(self, status: Status = SUCCESS, nodes: Iterable[str] | None = None) -> None:
        self.answer = PreFilterResult(status, None if nodes is None else frozenset(nodes))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return self.answer


class AlsoBefore(Before):
    name: ClassVar[str] = "AlsoBefore"


class SkippingRefuses(Refuses, Before):
    name: ClassVar[str] = "SkippingRefuses"

    def __init__(self, refused: Mapping[str, Status]) -> None:
        Refuses.__init__(self, refused)
        self.answer = PreFilterResult(SKIP)


class Likes(ScorePlugin):
    """Has favourites; its scores stand as they are."""

    name: ClassVar[str] = "Likes"

    def __init__(self, scores: Mapping[str, int]) -> None:
        self.scores = scores
        self.asked = 0

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self.asked += 1
        return self.scores.get(node.name, 0)


class LikesScaled(Likes):
    name: ClassVar[str] = "LikesScaled"

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scale_to_max(scores)


class LikesByValue(LikesScaled):
    """The same, normalized once for each raw score."""

    name: ClassVar[str] = "LikesByValue"
    normalizes_by_value: ClassVar[bool] = True

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        assert not nodes
        assert len(scores) == len(set(scores))
        scale_to_max(scores)


class LikesTheThird(LikesByValue):
    """Overrides `normalize` alone: what is said of the other does not count for it."""

    name: ClassVar[str] = "LikesTheThird"

    def normalize(
        self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: list[int]
    ) -> None:
        scores[:] = [100 if node.name == "n2" else 0 for node in nodes]


class LikesElsewhere(LikesScaled):
    name: ClassVar[str] = "LikesElsewhere"
    scores_locally: ClassVar[bool] = False


class _Indifferent(PreScorePlugin):
    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SKIP


class SkipsLikes(_Indifferent, Likes):
    name: ClassVar[str] = "SkipsLikes"


class SkipsLikesScaled(_Indifferent, LikesScaled):
    name: ClassVar[str] = "SkipsLikesScaled"


class SkipsLikesElsewhere(_Indifferent, LikesElsewhere):
    name: ClassVar[str] = "SkipsLikesElsewhere"


class SometimesSkips(PreScorePlugin, LikesByValue):
    name: ClassVar[str] = "SometimesSkips"
    skips: bool = True

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SKIP if self.skips else SUCCESS


def nodes(count: int) -> ClusterState:
    return a_cluster(a_node_facts(f"n{number}") for number in range(count))


def a_cycle(
    cluster: ClusterState, *plugins: Plugin, percentage: int = 0, **weights: int
) -> SchedulingCycle:
    profile = Profile(
        "default-scheduler", plugins, weights, percentage_of_nodes_to_score=percentage
    )
    return SchedulingCycle(profile, cluster)


def chosen(cycle: SchedulingCycle, pod: PodInfo | None = None) -> str:
    decision = cycle.decide(pod or a_pod_info())
    assert isinstance(decision, Chosen), decision
    return decision.node_name


def refused(cycle: SchedulingCycle, pod: PodInfo | None = None) -> NoNode:
    decision = cycle.decide(pod or a_pod_info())
    assert isinstance(decision, NoNode), decision
    return decision


# --- how many nodes are tried ---


@pytest.mark.parametrize(
    ("total", "percentage", "enough"),
    [
        (1, 0, 1),
        (99, 0, 99),
        (99, 10, 99),
        (100, 0, 100),
        (200, 0, 100),
        (500, 0, 230),
        (1000, 0, 420),
        (5000, 0, 500),
        (6000, 0, 300),
        (10_000, 0, 500),
        (1000, 30, 300),
        (1000, 1, 100),
        (1000, 100, 1000),
    ],
)
def test_how_many_nodes_that_fit_are_enough(total: int, percentage: int, enough: int) -> None:
    """`max(5, 50 - n/125)` percent, never fewer than 100."""
    cycle = a_cycle(a_cluster(), percentage=percentage)

    assert cycle._nodes_to_find(CycleState(), total) == enough


def test_the_search_stops_when_there_are_enough() -> None:
    plugin = Refuses({"n0": unschedulable("no")})
    cycle = a_cycle(nodes(150), plugin)

    decision = cycle.decide(a_pod_info())

    assert isinstance(decision, Chosen)
    assert (decision.evaluated, decision.feasible) == (101, 100)
    assert len(plugin.asked) == 101


def test_the_next_search_begins_where_the_last_one_stopped() -> None:
    plugin = Elsewhere()
    cycle = a_cycle(nodes(150), plugin)
    cycle.decide(a_pod_info())
    plugin.asked.clear()

    cycle.decide(a_pod_info())

    assert plugin.asked[0] == "n100"
    assert plugin.asked[50] == "n0"
    assert len(set(plugin.asked)) == 100


def test_in_small_clusters_every_search_begins_at_the_same_node() -> None:
    plugin = Elsewhere()
    cycle = a_cycle(nodes(3), plugin)
    cycle.decide(a_pod_info())
    cycle.decide(a_pod_info())

    assert plugin.asked == ["n0", "n1", "n2"] * 2


def test_rotation_survives_nodes_that_go() -> None:
    cluster = nodes(150)
    cycle = a_cycle(cluster, Refuses())
    cycle.decide(a_pod_info())
    for number in range(10, 150):
        cluster.remove_node(f"n{number}")

    assert isinstance(cycle.decide(a_pod_info()), Chosen)


# --- pre_filter ---


@pytest.mark.parametrize(
    ("plugins", "message", "rejected_by"),
    [
        pytest.param([Before(unresolvable("no"))], "no", {"Before"}, id="refused"),
        pytest.param(
            [Before(nodes=["n1"]), AlsoBefore(nodes=["n2"])],
            "node(s) didn't satisfy plugin(s) [AlsoBefore Before]",
            {"Before", "AlsoBefore"},
            id="nothing-in-common",
        ),
    ],
)
def test_pods_that_no_node_can_take(
    plugins: list[Plugin], message: str, rejected_by: set[str]
) -> None:
    decision = refused(a_cycle(nodes(3), *plugins))

    assert decision.pre_filter_message == message
    assert decision.rejected_by == rejected_by
    assert set(decision.statuses) == {"n0", "n1", "n2"}
    assert {status.code for status in decision.statuses.values()} == {Code.UNRESOLVABLE}


def test_an_error_before_ends_the_cycle() -> None:
    decision = a_cycle(nodes(3), Before(failed(ValueError("oh")))).decide(a_pod_info())

    assert isinstance(decision, CycleError)
    assert decision.status.message == 'running PreFilter plugin "Before": oh'


def test_a_plugin_that_skips_is_not_asked_about_nodes() -> None:
    plugin = SkippingRefuses({"n0": unschedulable("no")})

    assert chosen(a_cycle(nodes(1), plugin)) == "n0"
    assert plugin.asked == []


def test_only_nodes_that_were_named_are_tried() -> None:
    plugin = Refuses()
    assert chosen(a_cycle(nodes(3), Before(nodes=["n1"]), plugin)) == "n1"
    assert plugin.asked == ["n1"]


def test_nodes_that_were_not_named_say_so() -> None:
    cycle = a_cycle(nodes(2), Before(nodes=["n1"]), Refuses({"n1": unschedulable("full")}))

    decision = refused(cycle)

    assert {name: status.message for name, status in decision.statuses.items()} == {
        "n0": "node(s) didn't satisfy plugin(s) [Before]",
        "n1": "full",
    }
    assert decision.rejected_by == {"Before", "Refuses"}


# --- filter ---


def test_every_plugin_that_refused_a_node_may_change_its_mind() -> None:
    cycle = a_cycle(
        nodes(2),
        Refuses({"n0": unschedulable("a")}),
        Elsewhere({"n0": unschedulable("b"), "n1": unresolvable("c")}),
    )

    decision = refused(cycle)

    assert decision.rejected_by == {"Refuses", "Elsewhere"}
    assert {name: (s.message, s.plugin) for name, s in decision.statuses.items()} == {
        "n0": ("a", "Refuses"),
        "n1": ("c", "Elsewhere"),
    }


def test_plugins_that_only_wait_are_told_apart() -> None:
    cycle = a_cycle(nodes(1), Refuses({"n0": Status(Code.PENDING, ("soon",))}))

    assert refused(cycle).pending_on == {"Refuses"}


@pytest.mark.parametrize("plugin", [Refuses, Elsewhere])
def test_an_error_about_one_node_ends_the_cycle(plugin: type[Refuses]) -> None:
    cycle = a_cycle(nodes(3), plugin({"n1": failed(ValueError("oh"))}))

    for _ in range(2):  # and it is not remembered
        decision = cycle.decide(a_pod_info())
        assert isinstance(decision, CycleError)
        assert decision.status.message == f'running "{plugin.name}" filter plugin: oh'


def test_without_nodes_no_plugin_rejects() -> None:
    decision = refused(a_cycle(a_cluster(), Refuses()))

    assert decision.statuses == {}
    assert decision.rejected_by == frozenset()


# --- nominated nodes ---


def test_a_nominated_node_is_tried_alone() -> None:
    plugin = Refuses()
    cycle = a_cycle(nodes(3), plugin, Likes({"n0": 100}), Likes=1)

    assert chosen(cycle, a_pod_info(status={"nominatedNodeName": "n2"})) == "n2"
    assert plugin.asked == ["n2"]


@pytest.mark.parametrize("plugin", [Refuses, Elsewhere])
def test_a_nominated_node_that_does_not_fit_is_one_of_many(plugin: type[Refuses]) -> None:
    cycle = a_cycle(nodes(2), plugin({"n1": unschedulable("no")}))

    assert chosen(cycle, a_pod_info(status={"nominatedNodeName": "n1"})) == "n0"


def test_a_nominated_node_that_is_gone_is_forgotten() -> None:
    assert chosen(a_cycle(nodes(1)), a_pod_info(status={"nominatedNodeName": "gone"})) == "n0"


# --- score ---


@pytest.mark.parametrize("plugin", [Likes, LikesScaled, LikesByValue, LikesElsewhere])
def test_the_node_with_the_highest_score_wins(plugin: type[Likes]) -> None:
    assert chosen(a_cycle(nodes(3), plugin({"n0": 1, "n1": 3, "n2": 2}))) == "n1"


def test_the_first_of_equal_scores_wins() -> None:
    cycle = a_cycle(nodes(3), Likes({"n0": 1, "n1": 5, "n2": 5}))

    assert {chosen(cycle) for _ in range(10)} == {"n1"}


def test_weights_count() -> None:
    def cycle(**weights: int) -> SchedulingCycle:
        return a_cycle(
            nodes(2), Likes({"n0": 60, "n1": 40}), LikesScaled({"n0": 1, "n1": 2}), **weights
        )

    assert chosen(cycle(Likes=3, LikesScaled=1)) == "n0"
    assert chosen(cycle(Likes=1, LikesScaled=3)) == "n1"


def test_scores_that_are_normalized_by_value_are_those_of_all_nodes() -> None:
    generator = random.Random(3)  # noqa: S311 - the same scores each time
    for _ in range(50):
        names = [f"n{number}" for number in range(generator.choice([2, 5, 40]))]
        likes, fixed = (
            {name: generator.randrange(top) for name in names}
            for top in (generator.choice([1, 4, 90]), 100)
        )

        def choice(plugin: Likes, fixed: Mapping[str, int] = fixed, total: int = len(names)) -> str:
            return chosen(a_cycle(nodes(total), Likes(fixed), plugin))

        assert choice(LikesByValue(likes)) == choice(LikesScaled(likes))


def test_a_subclass_that_normalizes_in_its_own_way_gets_all_nodes() -> None:
    assert chosen(a_cycle(nodes(3), LikesTheThird({"n0": 1}))) == "n2"


@pytest.mark.parametrize("plugin", [SkipsLikes, SkipsLikesScaled, SkipsLikesElsewhere])
def test_a_plugin_that_scores_all_alike_is_left_out(plugin: type[Likes]) -> None:
    assert chosen(a_cycle(nodes(2), plugin({"n1": 100}))) == "n0"


def test_a_plugin_is_asked_from_the_first_pod_on_that_it_does_not_skip() -> None:
    plugin = SometimesSkips({"n2": 1})
    cluster = nodes(5)
    cycle = a_cycle(cluster, Likes({"n3": 1}), plugin)

    assert chosen(cycle) == "n3"
    cluster.touch("n1")
    assert (chosen(cycle), plugin.asked) == ("n3", 0)
    plugin.skips = False
    assert (chosen(cycle), plugin.asked) == ("n2", 5)
    plugin.skips = True
    assert (chosen(cycle), plugin.asked) == ("n3", 5)
    cluster.touch("n4")
    assert (chosen(cycle), plugin.asked) == ("n3", 6)
    plugin.skips = False
    assert (chosen(cycle), plugin.asked) == ("n2", 6)


def test_a_single_node_needs_no_score() -> None:
    plugin = Likes({})

    assert chosen(a_cycle(nodes(1), plugin)) == "n0"
    assert plugin.asked == 0


# --- what is remembered ---


def test_the_same_pod_again_costs_nothing() -> None:
    plugin, scorer, scaled = Refuses(), Likes({}), LikesScaled({})
    cycle = a_cycle(nodes(20), plugin, scorer, scaled)
    for number in range(10):
        chosen(cycle, a_pod_info(f"pod-{number}"))

    assert cycle.evaluations == 20
    assert (len(plugin.asked), scorer.asked, scaled.asked) == (20, 20, 20)


def lines_run(action: Callable[[], object]) -> int:
    """The number of lines of Python that an action runs."""
    number = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal number
        number += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return number


def lines_for_another_pod(number_of_nodes: int) -> int:
    """For a pod of a known class, after one node has changed."""
    cluster = nodes(number_of_nodes)
    cycle = a_cycle(cluster, Refuses(), Likes({}))
    chosen(cycle)
    cluster.set_pod(a_pod_info("new", {"cpu": "1"}, node="n3"))
    return lines_run(lambda: chosen(cycle))


def test_another_pod_runs_no_line_per_node() -> None:
    assert lines_for_another_pod(80) == lines_for_another_pod(20)


def test_nodes_ranked_in_groups_are_ranked_as_one_by_one() -> None:
    """From any node on, after any changes, with several plugins of different weights."""
    generator = random.Random(11)  # noqa: S311 - the same cluster each time
    cluster = nodes(150)
    scores = {node.name: generator.randrange(4) for node in cluster.nodes}
    refused: dict[str, Status] = {}
    kinds: list[tuple[type[Likes], type[Likes]]] = [(LikesByValue, Likes), (LikesScaled, Likes)]
    cycles = []
    for kind in kinds:
        filter_ = Refuses()
        filter_.refused = refused
        scorers = [one(scores) for one in kind]
        cycle = a_cycle(cluster, filter_, *scorers, percentage=100, **{kind[0].name: 3})
        assert cycle._scorer._plan(set(), cycle._scorer.raw_scores).ranks_groups == (
            kind[0] is LikesByValue
        )
        cycles.append(cycle)
    for _ in range(200):
        for node in generator.sample(list(cluster.nodes), generator.choice([1, 2, 30])):
            scores[node.name] = generator.randrange(4)
            refused.pop(node.name, None)
            if generator.random() < 0.3:
                refused[node.name] = unschedulable("no")
            cluster.touch(node.name)
        start = generator.randrange(150)
        for cycle in cycles:
            cycle._start = start

        assert chosen(cycles[0]) == chosen(cycles[1])


def lines_for_another_pod_with_alternatives(number_of_nodes: int) -> int:
    """For a pod that ranks all nodes, some of which are full, after the pod before got a device."""
    facts = [a_node_facts(f"node-{number}") for number in range(number_of_nodes)]
    names = [f"c{number}" for number in range(6)]
    request = a_request(first_available=(an_alternative("two", count=2), an_alternative("one")))
    bench = Bench(*(a_stored_claim(name, request) for name in names), nodes=facts)
    cycle = a_cycle(bench.cluster, NodeResourcesFit(), bench.plugin)

    def schedule(name: str) -> None:
        pod = a_pod_with_claims(name, pod=f"pod-of-{name}")
        decision = cycle.decide(pod)
        assert isinstance(decision, Chosen)
        bench.cluster.assume_pod(pod, decision.node_name)
        assert bench.plugin.reserve(decision.state, pod, decision.node_name).is_success

    for name in names[:-1]:
        schedule(name)
    before = cycle.evaluations
    lines = lines_run(lambda: schedule(names[-1]))
    assert cycle.evaluations == before + 1
    return lines


def test_another_pod_with_alternatives_runs_no_line_per_node() -> None:
    few, many = map(lines_for_another_pod_with_alternatives, (100, 1000))

    assert many == few


def test_nodes_with_cached_scores_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = nodes(150)
    cycle = a_cycle(cluster, Refuses({"n4": unschedulable("no")}), LikesByValue({}), percentage=100)
    chosen(cycle)
    cluster.touch("n3")
    monkeypatch.setattr(EquivalenceClassCache, "_first_that_may_fit", None)
    monkeypatch.setattr(EquivalenceClassCache, "nodes_at", None)

    assert chosen(cycle) == "n0"


class InterruptsScoring(TimeSlice):
    """Over after so many scores."""

    def __init__(self, scores: int) -> None:
        super().__init__(1.0, lambda: 0.0)
        self.scores = scores
        self.scorer: Likes | None = None

    def check(self) -> None:
        if self.scorer is not None and self.scorer.asked >= self.scores:
            raise DeadlineExceededError


def test_scoring_goes_on_in_the_next_slice() -> None:
    """With the same nodes: the search begins where the interrupted one began."""
    cluster = nodes(300)
    filters = Refuses()
    scorer = Likes({"n7": 1, "n200": 2})
    cycle = a_cycle(cluster, filters, scorer)
    time = InterruptsScoring(60)
    time.scorer = scorer
    with pytest.raises(DeadlineExceededError):
        cycle.decide(a_pod_info(), time)
    assert time.has_progress

    assert chosen(cycle) == "n7"
    assert scorer.asked == len(filters.asked) == cycle._nodes_to_find(CycleState(), 300)


def test_a_node_that_changed_is_looked_at_again() -> None:
    cluster = nodes(20)
    cycle = a_cycle(cluster, Refuses())
    chosen(cycle)

    cluster.set_pod(a_pod_info("new", {"cpu": "1"}, node="n3"))
    chosen(cycle)

    assert cycle.evaluations == 21


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.set_node(a_node_facts("n0", labels={"a": "b"})), id="labels"),
        pytest.param(lambda c: c.touch("n0"), id="something-kept-elsewhere"),
        pytest.param(
            lambda c: c.assume_pod(a_pod_info("x", {"cpu": "1"}), "n0"), id="a-pod-assumed"
        ),
    ],
)
def test_what_counts_as_a_change(change: Callable[[ClusterState], object]) -> None:
    cluster = nodes(2)
    cycle = a_cycle(cluster, Refuses())
    chosen(cycle)

    change(cluster)
    chosen(cycle)

    assert cycle.evaluations == 3


def test_pods_of_another_shape_are_looked_at_anew() -> None:
    cycle = a_cycle(nodes(2), NodeResourcesFit())
    chosen(cycle, a_pod_info("a", {"cpu": "1"}))
    chosen(cycle, a_pod_info("b", {"cpu": "2"}))

    assert cycle.evaluations == 4


def test_plugins_that_look_elsewhere_are_always_asked() -> None:
    plugin = Elsewhere()
    cycle = a_cycle(nodes(2), plugin)
    chosen(cycle)
    plugin.refused = {"n0": unschedulable("now")}

    assert chosen(cycle) == "n1"
    assert plugin.asked == ["n0", "n1"] * 2


def test_unless_they_say_what_their_answer_rests_on() -> None:
    plugin = Elsewhere(equivalence_key="this")
    cycle = a_cycle(nodes(2), plugin)
    chosen(cycle)
    chosen(cycle)
    assert plugin.asked == ["n0", "n1"]

    plugin.rest = "that"
    chosen(cycle)

    assert plugin.asked == ["n0", "n1"] * 2


def test_only_so_much_is_remembered() -> None:
    cycle = a_cycle(nodes(1), NodeResourcesFit())
    for number in range(2 * MAX_EQUIVALENCE_CLASSES):
        cycle.decide(a_pod_info("pod", {"cpu": f"{number}m"}))

    assert len(cycle._caches) == MAX_EQUIVALENCE_CLASSES


def test_what_is_used_is_remembered_longest() -> None:
    cycle = a_cycle(nodes(1), NodeResourcesFit())
    favourite = a_pod_info("pod", {"cpu": "1"})
    for number in range(2 * MAX_EQUIVALENCE_CLASSES):
        cycle.decide(favourite)
        cycle.decide(a_pod_info("pod", {"memory": f"{number + 1}Ki"}))

    assert cycle.evaluations == 1 + 2 * MAX_EQUIVALENCE_CLASSES


def test_nodes_that_are_gone_are_forgotten() -> None:
    cluster = nodes(1)
    cycle = a_cycle(cluster, Refuses())
    for number in range(1, 400):
        cluster.set_node(a_node_facts(f"n{number}"))
        cluster.remove_node(f"n{number - 1}")
        chosen(cycle)

    (table,) = cycle._caches.values()
    assert len(table) == 1
    assert table.index_of("n398") is None


def test_verdicts_survive_nodes_that_come_and_go() -> None:
    cluster = nodes(20)
    cycle = a_cycle(cluster, Refuses())
    chosen(cycle)

    cluster.set_node(a_node_facts("new"))
    cluster.remove_node("n3")
    chosen(cycle)

    assert cycle.evaluations == 21


def test_a_node_that_filled_up_is_not_chosen_again() -> None:
    cluster = nodes(3)
    cycle = a_cycle(cluster, NodeResourcesFit())
    places = []
    for number in range(4):
        pod = a_pod_info(f"pod-{number}", {"cpu": "3"})
        decision = cycle.decide(pod)
        places.append(decision.node_name if isinstance(decision, Chosen) else None)
        if isinstance(decision, Chosen):
            cluster.assume_pod(pod, decision.node_name)

    assert sorted(place or "" for place in places) == ["", "n0", "n1", "n2"]
    assert cycle.evaluations == 3 + 3, "each change of a node is looked at once"


# --- nodes that are promised to others ---


def promised(cluster: ClusterState, priority: int, node: str = "n0") -> PodInfo:
    """A pod that waits for room on a node."""
    pod = a_pod_info("promised", {"cpu": "3"}, priority=priority)
    cluster.nominations.put(pod, node)
    return pod


@pytest.mark.parametrize(
    ("priority", "fits"),
    [
        pytest.param(9, True, id="a-more-important-pod-may-push-it-aside"),
        pytest.param(10, False, id="an-equal-one-may-not"),
        pytest.param(11, False, id="a-less-important-one-may-not"),
    ],
)
def test_room_that_is_made_for_a_pod_is_not_taken_by_lesser_ones(priority: int, fits: bool) -> None:
    cluster = nodes(1)
    promised(cluster, priority)
    decision = a_cycle(cluster, NodeResourcesFit()).decide(
        a_pod_info("p", {"cpu": "3"}, priority=10)
    )

    assert isinstance(decision, Chosen) is fits
    if isinstance(decision, NoNode):
        assert decision.statuses["n0"].message == "Insufficient cpu"


def test_another_node_is_taken_instead() -> None:
    cluster = nodes(2)
    promised(cluster, 10)

    assert chosen(a_cycle(cluster, NodeResourcesFit()), a_pod_info("p", {"cpu": "3"})) == "n1"


def test_the_pod_itself_finds_its_room() -> None:
    cluster = nodes(1)
    pod = promised(cluster, 10)

    assert chosen(a_cycle(cluster, NodeResourcesFit()), pod) == "n0"


def test_a_promised_node_must_do_without_the_promised_pod_too() -> None:
    """It may never come: a pod that counts on it would run alone."""
    cluster = nodes(1)
    promised(cluster, 10)
    plugin = Refuses({"n0": unschedulable("as it is now")})

    assert refused(a_cycle(cluster, plugin)).statuses["n0"].message == "as it is now"
    assert plugin.asked == ["n0"]


def test_a_promised_pod_that_has_its_place_is_counted_once() -> None:
    cluster = nodes(1)
    pod = a_pod_info("promised", {"cpu": "2"}, priority=10)
    cluster.nominations.put(pod, "n0")
    cluster.assume_pod(pod, "n0")

    assert chosen(a_cycle(cluster, NodeResourcesFit()), a_pod_info("p", {"cpu": "2"})) == "n0"


def test_what_depends_on_a_promise_is_not_remembered() -> None:
    cluster = nodes(1)
    pod = promised(cluster, 10)
    cycle = a_cycle(cluster, NodeResourcesFit())
    refused(cycle, a_pod_info("p", {"cpu": "3"}))

    cluster.nominations.remove(pod.uid)

    assert chosen(cycle, a_pod_info("p", {"cpu": "3"})) == "n0"
    assert not cluster.nominations


# --- with devices ---


def test_claims_that_ask_for_the_same_are_searched_once_for_nodes_that_look_alike() -> None:
    facts = [a_node_facts(f"node-{number}") for number in range(1, 21)]
    bench = Bench(*(a_stored_claim(f"c{number}") for number in range(10)), nodes=facts)
    cycle = a_cycle(bench.cluster, NodeResourcesFit(), bench.plugin)
    for number in range(10):
        chosen(cycle, a_pod_with_claims(f"c{number}", pod=f"pod-{number}"))

    assert cycle.evaluations == 20
    assert bench.plugin.allocations == 1


def test_a_decision_costs_one_node() -> None:
    """Every pod that gets a device changes one node; only that one is searched again."""
    facts = [a_node_facts(f"node-{number}") for number in range(1, 21)]
    bench = Bench(*(a_stored_claim(f"c{number}") for number in range(10)), nodes=facts)
    cycle = a_cycle(bench.cluster, NodeResourcesFit(), bench.plugin)
    for number in range(10):
        pod = a_pod_with_claims(f"c{number}", pod=f"pod-{number}")
        decision = cycle.decide(pod)
        assert isinstance(decision, Chosen)
        bench.cluster.assume_pod(pod, decision.node_name)
        assert bench.plugin.reserve(decision.state, pod, decision.node_name).is_success

    assert cycle.evaluations <= 20 + 9
    assert bench.plugin.allocations <= 20 + 9 + 10
