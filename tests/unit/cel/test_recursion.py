"""Python's recursion limit is raised while deep expressions are processed, and restored afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from allot.cel import (
    AttributeValue,
    CelCompileError,
    cel_device,
    compile_derived,
    compile_selector,
)
from allot.cel.recursion import SHALLOW_LEVELS, recursion_room

DEVICE = cel_device("gpu.example.com", "gpu-0", {}, {})
USUAL = 1_000
"""Python's default."""


@pytest.fixture(autouse=True)
def usual_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(USUAL)
    yield
    sys.setrecursionlimit(before)


DEEP = [
    pytest.param("(" * 249 + "1" + ")" * 249, 1, id="parentheses"),
    pytest.param("1" + " + 1" * 250, 251, id="sums"),
    pytest.param("-(" * 124 + "1" + ")" * 124, 1, id="negations"),
    pytest.param("[" * 200 + "1" + "]" * 200 + "[0]" * 200, 1, id="lists"),
    pytest.param("device.driver == '' ? 0 : " * 247 + "7", 7, id="conditionals"),
    pytest.param("[[" * 100 + "1" + "]]" * 100 + " == [] ? 1 : 2", 2, id="comparisons"),
]


@pytest.mark.parametrize(("expression", "value"), DEEP)
def test_deep_expressions_leave_the_limit_unchanged(expression: str, value: int) -> None:
    program = compile_derived(expression)
    assert sys.getrecursionlimit() == USUAL

    assert program.evaluate(DEVICE).value == AttributeValue(int_=value)
    assert program.evaluator.reference(DEVICE).value == value
    assert sys.getrecursionlimit() == USUAL


def test_errors_leave_the_limit_unchanged() -> None:
    with pytest.raises(CelCompileError):
        compile_selector("(" * 300 + "true" + ")" * 300)

    assert sys.getrecursionlimit() == USUAL


def test_shallow_expressions_do_not_change_the_limit() -> None:
    with recursion_room(SHALLOW_LEVELS):
        assert sys.getrecursionlimit() == USUAL


def test_the_last_thread_restores_the_limit() -> None:
    entered, may_leave = threading.Event(), threading.Event()

    def other() -> None:
        with recursion_room(200):
            entered.set()
            may_leave.wait(60)

    thread = threading.Thread(target=other)
    with recursion_room(100):
        thread.start()
        assert entered.wait(60)
    assert sys.getrecursionlimit() > USUAL
    may_leave.set()
    thread.join(60)

    assert sys.getrecursionlimit() == USUAL


def called_at(depth: int, function: Callable[[], None]) -> None:
    if depth:
        called_at(depth - 1, function)
    else:
        function()


def test_callers_may_use_a_higher_limit_of_the_program() -> None:
    sys.setrecursionlimit(5_000)
    program = compile_derived("1" + " + 1" * 250)

    def evaluate() -> None:
        assert program.evaluator.reference(DEVICE).value == 251

    called_at(4_800, evaluate)

    assert sys.getrecursionlimit() == 5_000


def test_a_limit_set_meanwhile_is_kept() -> None:
    with recursion_room(200):
        sys.setrecursionlimit(9_000)

    assert sys.getrecursionlimit() == 9_000
