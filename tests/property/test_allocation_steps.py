"""Laws of effort: a search never takes more steps than the one of Kubernetes v1.38, and finds the same."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from allot.allocation import (
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    StepBudget,
    allocate,
)
from allot.allocation.allocator import FAILURES_BEFORE_FORWARD_CHECKING
from tests.property.demanding_problems import demanding_problems
from tests.property.plain_search import Picked, TooManyStepsError, plain_answer
from tests.property.test_allocation_laws import small_problems

MAX_PLAIN_STEPS: Final = 5_000
BUDGET: Final = StepBudget(MAX_PLAIN_STEPS)
PROBLEMS: Final = st.one_of(small_problems(), demanding_problems())
FAILURES: Final = st.sampled_from([FAILURES_BEFORE_FORWARD_CHECKING, 0, 1, 2, 5, -1])
AS_LONG_AS_IT_TAKES: Final = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def answer_of(outcome: AllocationOutcome) -> Picked | str | None:
    match outcome:
        case Allocated(results):
            return [
                (result.request, f"{result.driver}/{result.pool}/{result.device}")
                for each in results
                for result in each.devices.results
            ]
        case Failed(error):
            return error
        case Infeasible():
            return None
    raise AssertionError(f"no answer: {outcome}")


def check(problem: AllocationProblem, failures: int) -> None:
    try:
        expected, steps = plain_answer(problem, MAX_PLAIN_STEPS)
    except TooManyStepsError:
        reject()
    outcome = allocate(problem, BUDGET, lambda: "share", failures_before_forward_checking=failures)

    assert answer_of(outcome) == expected
    assert outcome.steps <= steps


@settings(AS_LONG_AS_IT_TAKES, max_examples=150)
@given(PROBLEMS, FAILURES)
def test_never_more_steps_than_v1_38(problem: AllocationProblem, failures: int) -> None:
    """Whenever foresight begins."""
    check(problem, failures)


@pytest.mark.slow
@settings(AS_LONG_AS_IT_TAKES, max_examples=5_000)
@given(PROBLEMS, FAILURES)
def test_never_more_steps_than_v1_38_in_the_long_run(
    problem: AllocationProblem, failures: int
) -> None:
    check(problem, failures)
