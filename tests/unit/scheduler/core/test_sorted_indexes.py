from __future__ import annotations

import random

import pytest

from allot.scheduler.core.sorted_indexes import SortedIndexes

SIZE = 40


def test_it_answers_as_a_scan_from_the_start_does() -> None:
    generator = random.Random(5)  # noqa: S311 - the same indexes each time
    indexes, known = SortedIndexes(), set()
    for _ in range(1000):
        index = generator.randrange(SIZE)
        if generator.random() < 0.5:
            indexes.add(index)
            known.add(index)
        else:
            indexes.discard(index)
            known.discard(index)
        first, last = generator.randrange(SIZE), generator.randrange(SIZE)
        order = [*range(first, SIZE), *range(first)]
        expected = [index for index in order if index in known]
        stretch = order[: order.index(last) + 1]

        assert len(indexes) == len(known)
        assert [index for index in range(SIZE) if index in indexes] == sorted(known)
        assert indexes.all_from(first) == expected
        assert indexes.between(first, last) == [index for index in stretch if index in known]
        if known:
            assert indexes.first_from(first) == expected[0]


def test_an_empty_one_has_no_first() -> None:
    indexes = SortedIndexes()
    indexes.add(1)
    indexes.clear()

    assert not indexes
    with pytest.raises(IndexError):
        indexes.first_from(0)
