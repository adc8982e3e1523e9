"""Deadlines: an allocation ends when its time is over, whatever it is doing, and leaves only what stays true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from allot.allocation import (
    Abandoned,
    AllocationOutcome,
    AllocationProblem,
    Explanation,
    Limit,
    StepBudget,
    allocate,
    explain,
    proposals,
)
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import DeviceConstraint, DeviceDerivedAttribute
from allot.api.identities import DeviceId
from allot.api.slices import ResourcePool, ResourceSlice
from allot.cel import DerivedAttribute, Selector
from allot.deadline import Deadline, DeadlineExceededError
from allot.testing.builders import DRIVER, a_claim, a_device, a_selector, a_slice
from tests.unit.allocation.bombs import BOMBS, exactly, with_every_gate

BUDGET: Final = StepBudget(100_000)
MOMENTS: Final = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)


class Time:
    """Time that is over when it has been asked for so often."""

    def __init__(self, asks: int = 10**9) -> None:
        self.asks = 0
        self.allowed = asks

    def __call__(self) -> None:
        self.asks += 1
        if self.asks > self.allowed:
            raise DeadlineExceededError


def answer(problem: AllocationProblem, deadline: Deadline) -> AllocationOutcome:
    return allocate(problem, BUDGET, lambda: "share", deadline=deadline)


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_it_ends_at_any_moment_and_leaves_no_trace(make: Callable[[], AllocationProblem]) -> None:
    expected = answer(make(), Time())
    problem = make()
    taken, slices = problem.ledger.snapshot(), list(problem.inventory.slices())

    for asks in MOMENTS:
        time = Time(asks)
        outcome = answer(problem, time)
        if time.asks > asks:
            assert isinstance(outcome, Abandoned)
            assert outcome.limit is Limit.TIME
        else:
            assert outcome == expected
        assert problem.ledger.snapshot() == taken
        assert list(problem.inventory.slices()) == slices

    again = answer(problem, Time())
    assert again == expected
    assert again.steps == expected.steps


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_explanations_say_what_they_have(make: Callable[[], AllocationProblem]) -> None:
    problem = make()
    explained: Explanation | None = None

    for asks in MOMENTS:
        time = Time(asks)
        explained = explain(problem, deadline=time)
        assert explained.is_complete == (time.asks <= asks)

    assert explain(problem) == explain(make())
    assert explain(problem).is_complete


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_proposals_say_what_they_have(make: Callable[[], AllocationProblem]) -> None:
    problem = make()
    few_steps = StepBudget(50)

    for asks in MOMENTS[::3]:
        time = Time(asks)
        found = proposals(problem, few_steps, deadline=time)
        assert found.is_complete == (time.asks <= asks)


# --- how often it is asked ---


class Watch:
    """Counts what is done between two questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checks = self.steps = self.most_checks = self.most_steps = 0
        check, place = AllocationAttempt._examine_device, AllocationAttempt.place

        def counted_check(*arguments: object, **options: object) -> object:
            self.checks += 1
            return check(*arguments, **options)  # type: ignore[arg-type]

        def counted_place(*arguments: object) -> None:
            self.steps += 1
            place(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(AllocationAttempt, "_examine_device", counted_check)
        monkeypatch.setattr(AllocationAttempt, "place", counted_place)

    def __call__(self) -> None:
        self.most_checks = max(self.most_checks, self.checks)
        self.most_steps = max(self.most_steps, self.steps)
        self.checks = self.steps = 0


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_little_is_done_between_two_questions(
    make: Callable[[], AllocationProblem], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make()
    watch = Watch(monkeypatch)

    answer(problem, watch)
    watch()

    assert watch.most_steps <= 64
    assert watch.most_checks <= 512


def test_gathering_devices_asks_in_proportion() -> None:
    def asks(devices: int) -> int:
        problem = with_every_gate(*slices_of(devices), claim=a_claim())
        time = Time()
        view = problem.inventory.view(problem.node, WorkMeter(time))
        assert len(view.devices) == devices
        return time.asks

    assert asks(6_400) >= 6_400 // 64
    assert asks(12_800) >= 2 * asks(6_400) - 1


def slices_of(devices: int) -> list[ResourceSlice]:
    pool = ResourcePool("node-1", 1, devices // 64)
    return [
        a_slice(
            *(a_device(f"gpu-{number}-{at}") for at in range(64)), name=f"slice-{number}", pool=pool
        )
        for number in range(devices // 64)
    ]


def test_gathering_goes_on_where_it_ended() -> None:
    """What was prepared stays prepared, so that a node with many devices is seen one day."""
    problem = with_every_gate(*slices_of(3_200), claim=a_claim())

    outcomes = [answer(problem, Time(30)) for _ in range(10)]

    assert isinstance(outcomes[0], Abandoned)
    assert not isinstance(outcomes[-1], Abandoned)


def test_gathering_many_devices_takes_runs_in_proportion() -> None:
    """Each run begins with the devices that are not there yet, not with those that are."""

    def runs(devices: int) -> int:
        problem = with_every_gate(*slices_of(devices), claim=a_claim())
        count = 1
        while isinstance(answer(problem, Time(20)), Abandoned):
            count += 1
            assert count < 200
        return count

    assert runs(25_600) <= 5 * runs(6_400)


def test_it_says_what_another_run_goes_on_after() -> None:
    """Devices prepared and expressions evaluated: so a scheduler knows whether to go on."""
    never = exactly(selectors=(a_selector('device.name == "none"'),))
    problem = with_every_gate(*slices_of(3_200), claim=a_claim(never))
    kept = []
    while isinstance(outcome := answer(problem, Time(30)), Abandoned):
        kept.append(outcome.kept)

    assert all(kept)
    assert sum(kept) <= 2 * 3_200
    assert sum(kept) > 3_200, "expressions count as well as devices"


# --- what is said ---


def test_the_request_is_named() -> None:
    problem = BOMBS["alternatives"]()

    outcome = answer(problem, Time(60))

    assert isinstance(outcome, Abandoned)
    assert outcome.claim == "default/claim"
    assert outcome.request.startswith("gpu-")
    assert outcome.expression == ""
    assert outcome.device is None


def test_the_step_limit_names_the_request_too() -> None:
    outcome = allocate(BOMBS["counters"](), StepBudget(100), lambda: "share")

    assert outcome == Abandoned(100, 0, Limit.STEPS)
    assert isinstance(outcome, Abandoned)
    assert (outcome.claim, outcome.request) == ("default/claim", "gpu")


def test_the_expression_and_the_device_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = f'device.attributes["{DRIVER}"].a == 7'
    problem = with_every_gate(
        a_slice(a_device("gpu-0", {"a": 1}), a_device("gpu-1", {"a": 2})),
        claim=a_claim(exactly(selectors=(a_selector(expression),))),
    )

    def endless(program: Selector, device: object, deadline: Deadline) -> bool:
        if device.device["name"] == "gpu-1":  # type: ignore[attr-defined]
            raise DeadlineExceededError
        return False

    monkeypatch.setattr(Selector, "matches", endless)
    outcome = answer(problem, Time())

    assert isinstance(outcome, Abandoned)
    assert outcome.limit is Limit.TIME
    assert (outcome.claim, outcome.request) == ("default/claim", "gpu")
    assert outcome.expression == expression
    assert outcome.device == DeviceId(DRIVER, "node-1", "gpu-1")


def test_a_derived_attribute_and_the_device_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = DeviceDerivedAttribute("example.com/x", "1 + 1")
    problem = with_every_gate(
        a_slice(a_device("gpu-0")),
        claim=a_claim(
            exactly(derived_attributes=(derived,)),
            constraints=(DeviceConstraint(match_attribute="example.com/x"),),
        ),
    )

    def endless(*_: object) -> None:
        raise DeadlineExceededError

    monkeypatch.setattr(DerivedAttribute, "attribute", endless)
    outcome = answer(problem, Time())

    assert isinstance(outcome, Abandoned)
    assert outcome.expression == "1 + 1"
    assert outcome.device == DeviceId(DRIVER, "node-1", "gpu-0")
