from __future__ import annotations

import random

from allot.scheduler.core.equivalence_cache import EquivalenceClassCache, NodeResult
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.state.nodes import NodeInfo
from tests.unit.scheduler.core.test_scheduling_cycle import nodes

SIZE = 60


def test_a_search_evaluates_what_changed_and_finds_what_a_fresh_one_finds() -> None:
    """After any changes, from any start: the same nodes, in the same order, with the same ones to score."""
    generator = random.Random(7)  # noqa: S311 - the same cluster each time
    cluster = nodes(SIZE)
    fits = dict.fromkeys((node.name for node in cluster.nodes), True)
    evaluated: list[str] = []

    def evaluate(node: NodeInfo) -> NodeResult:
        evaluated.append(node.name)
        return NodeResult(node.generation, SUCCESS if fits[node.name] else unresolvable("no"))

    cache = EquivalenceClassCache()
    changed = set(fits)
    for _ in range(300):
        for node in generator.sample(list(cluster.nodes), generator.choice([0, 1, 2, 40])):
            fits[node.name] = generator.random() < 0.7
            cluster.touch(node.name)
            changed.add(node.name)
        cache.sync(cluster)
        start, wanted = generator.randrange(SIZE), generator.choice([1, 5, 30, SIZE])
        order = [*range(start, SIZE), *range(start)]
        expected = [index for index in order if fits[cache.nodes[index].name]][:wanted]
        evaluated.clear()

        found = cache.find(start, wanted, evaluate)
        assert not isinstance(found, Status)
        assert list(found) == expected
        assert set(evaluated) <= changed
        changed -= set(evaluated)
        if expected:
            some = expected[:: generator.choice([1, 3])]
            unscored = cache.unscored(some, start)
            assert unscored == [index for index in some if index in cache._unscored]
            for index in unscored:
                cache.put_scores(index, index, (-index, 2 * index))
            assert not cache.unscored(some, start)
            assert cache.fixed_scores(some) == some
            assert cache.raw_scores(some, 0) == [-index for index in some]
            assert cache.raw_scores(some, 1) == [2 * index for index in some]


def test_scores_stay_with_their_nodes_when_others_go() -> None:
    cluster, cache = nodes(3), EquivalenceClassCache()
    cache.sync(cluster)
    cache.find(0, 3, lambda node: NodeResult(node.generation, SUCCESS))
    for index in range(3):
        cache.put_scores(index, index, (10 * index,))

    cluster.remove_node("n1")
    cache.sync(cluster)

    assert cache.fixed_scores(range(2)) == [0, 2]
    assert cache.raw_scores(range(2), 0) == [0, 20]
    assert not cache.unscored(range(2), 0)
