"""Compiled programs are remembered up to a number of them, and of characters in their expressions."""

from __future__ import annotations

from allot.cel import Origin
from allot.cel.program import Program, Use, _compile
from allot.features import FeatureGates
from allot.lru_cache import LRUCache


def test_the_programs_used_last_are_remembered() -> None:
    made: list[str] = []
    cache: LRUCache[str, Program] = LRUCache(3, 100, lambda program: len(program.expression))

    def get(expression: str) -> Program:
        def make() -> Program:
            made.append(expression)
            return _compile(expression, Use.SELECTOR, Origin.STORED, FeatureGates(()))

        return cache.get_or_make(expression, make)

    for expression in ("1 == 1", "2 == 2", "3 == 3", "1 == 1", "4 == 4", "1 == 1", "2 == 2"):
        get(expression)
    assert made == ["1 == 1", "2 == 2", "3 == 3", "4 == 4", "2 == 2"]
    get(f"'{'x' * 80}' == 'y'")
    get("1 == 1")
    get("4 == 4")
    assert made[5:] == [f"'{'x' * 80}' == 'y'", "1 == 1", "4 == 4"]
    assert get(f"'{'x' * 200}' == 'y'").expression
    get("4 == 4")
    assert made[-1] == "4 == 4"
