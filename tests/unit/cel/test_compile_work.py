"""Compiling takes work linear in the length of an expression, whatever it looks like.

Work is the number of Python calls, which is the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import pytest

from allot.cel import CelError, Origin
from allot.cel import program as programs
from allot.cel.program import Use
from allot.features import GATES, FeatureGates


def nested(before: str, core: str, after: str) -> Callable[[int], str]:
    return lambda count: before * count + core + after * count


def chain(part: str, between: str, around: str = "{}") -> Callable[[int], str]:
    return lambda count: around.format(between.join([part] * count))


SHAPES: Final[dict[str, tuple[Callable[[int], str], int]]] = {
    "and": (chain("device.driver == 'a'", " && "), 200),
    "or of constants": (chain("false", " || "), 500),
    "in": (chain("1 in [1]", " && "), 300),
    "sums": (chain("1", " + ", "{} == 1"), 60),
    "joined lists": (chain("[1]", " + ", "{} == []"), 60),
    "list": (chain("1", ", ", "[{}] == []"), 1_500),
    "list of lists": (chain("[1]", ", ", "[{}] == []"), 1_000),
    "map": (chain("'a': [1]", ", ", "{{{}}} == {{}}"), 500),
    "nested lists": (nested("[", "1", "]"), 100),
    "nested types": (nested("type(", "1", ")"), 100),
    "nested dyn": (nested("dyn(", "1", ")"), 100),
    "nested maps": (nested("{'a': ", "1", "}"), 100),
    "nested loops": (nested("[1].all(a, ", "true", ")"), 50),
    "nested transforms": (nested("[1].map(a, ", "1", ")"), 50),
    "nested bindings": (nested("cel.bind(a, 1, ", "true", ")"), 50),
    "bindings side by side": (chain("cel.bind(a, 1, a == 1)", " && "), 150),
    "chained calls": (lambda count: "'a'" + ".trim()" * count + " == ''", 60),
    "chained loops": (lambda count: "[1]" + ".map(a, a)" * count + " == []", 60),
    "conditionals": (lambda count: "true ? true : " * count + "true", 50),
    "parentheses": (nested("(", "true", ")"), 100),
    "signs": (lambda count: "!" * count + "true", 3_000),
    "errors": (chain("x", " && "), 300),
    "calls of nothing": (chain("f(1)", " && "), 300),
    "clauses": (lambda count: f"'{'%s' * count}'.format([{', '.join(['1'] * count)}]) == ''", 500),
    "constants": (chain("cidr('10.0.0.0/8').containsIP('10.0.0.1')", " && "), 150),
}


def calls_to_compile(expression: str) -> int:
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        if event == "call":
            count += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        programs._compile(expression, Use.SELECTOR, Origin.NEW, FeatureGates(GATES))
    except CelError:
        pass
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_text_is_twice_the_work(name: str) -> None:
    make, count = SHAPES[name]
    calls_to_compile(make(3))  # what is made on first use
    small, large = calls_to_compile(make(count)), calls_to_compile(make(2 * count))

    assert large <= 2.5 * small + 500
    assert large <= 80 * len(make(2 * count)) + 5_000
