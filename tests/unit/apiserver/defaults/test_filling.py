"""Parts of objects are filled in once for all objects that have them."""

from __future__ import annotations

from typing import Any

from allot.apiserver import known_results
from allot.apiserver.defaults import filling
from allot.apiserver.defaults.filling import PartDefaults


class CountingStep:
    """Fills in `a`, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        return filling.fill(data, a=1)


def test_equal_parts_are_filled_in_once() -> None:
    step = CountingStep()
    defaults = PartDefaults({"spec": step})

    filled = [defaults({"metadata": number, "spec": {"b": 2}}) for number in range(3)]

    assert filled == [{"metadata": number, "spec": {"b": 2, "a": 1}} for number in range(3)]
    assert step.count == 1


def test_the_order_of_fields_is_kept() -> None:
    defaults = PartDefaults({"spec": CountingStep()})
    for part in ({"b": 2, "c": 3}, {"c": 3, "b": 2}):
        assert list(defaults({"spec": part})["spec"]) == [*part, "a"]


def test_only_some_parts_are_remembered() -> None:
    step = CountingStep()
    defaults = PartDefaults({"spec": step})
    large = {"b": "x" * known_results.MAX_BYTES}
    for _ in range(2):
        for number in range(known_results.MAX_KNOWN + 1):
            defaults({"spec": {"b": number}})
        defaults({"spec": large})

    assert step.count == 2 * (known_results.MAX_KNOWN + 2)


def test_objects_without_the_part_are_left_alone() -> None:
    data: dict[str, Any] = {"metadata": {}}
    assert PartDefaults({"spec": CountingStep()})(data) is data
