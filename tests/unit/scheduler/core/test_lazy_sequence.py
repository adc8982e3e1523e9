from __future__ import annotations

from collections.abc import Sequence

from allot.scheduler.core.lazy_sequence import LazySequence


def test_items_are_listed_once_and_not_for_their_number() -> None:
    calls = []

    def list_items() -> Sequence[str]:
        calls.append("listed")
        return ["a", "b", "c"]

    items = LazySequence(3, list_items)
    assert len(items) == 3
    assert items
    assert not calls

    assert items[0] == "a"
    assert items[1:] == ["b", "c"]
    assert list(items) == ["a", "b", "c"]
    assert calls == ["listed"]
