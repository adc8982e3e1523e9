from __future__ import annotations

import random

from allot.scheduler.core.score_groups import ScoreGroups, Scores

SIZE = 50


def test_the_first_node_of_several_groups_is_that_of_a_scan() -> None:
    generator = random.Random(3)  # noqa: S311 - the same groups each time
    groups = ScoreGroups()
    known: dict[int, Scores] = {}
    for _ in range(500):
        index = generator.randrange(SIZE)
        if index in known:
            groups.remove(index, known.pop(index))
        else:
            known[index] = Scores(generator.randrange(3), (generator.randrange(2),))
            groups.add(index, known[index])

        assert groups.nodes == len(known)
        assert set(groups.scores()) == set(known.values())
        if known:
            wanted = generator.sample(groups.scores(), generator.randint(1, len(groups.scores())))
            start = generator.randrange(SIZE)
            order = [*range(start, SIZE), *range(start)]
            expected = next(index for index in order if known.get(index) in wanted)
            assert groups.first(wanted, start) == expected


def test_empty_groups_are_dropped() -> None:
    groups, scores = ScoreGroups(), Scores(1, ())
    groups.add(4, scores)
    groups.remove(4, scores)

    assert groups.scores() == []
    assert groups.nodes == 0
