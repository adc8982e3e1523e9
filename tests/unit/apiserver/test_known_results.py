"""Results of pure functions that are remembered."""

from __future__ import annotations

from allot.apiserver.known_results import LastResult


def test_the_result_for_the_very_same_value_is_the_same() -> None:
    asked: list[dict[str, int]] = []

    def with_one(value: dict[str, int]) -> dict[str, int]:
        asked.append(value)
        return {**value, "one": 1}

    known, first, second = LastResult(with_one), {"a": 1}, {"a": 1}

    result = known.of(first)
    assert result == {"a": 1, "one": 1}
    assert known.of(first) is result
    assert known.of(second) == result
    assert known.of(first) == result
    assert [id(value) for value in asked] == [id(first), id(second), id(first)]
