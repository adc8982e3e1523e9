"""Scenarios that pass on Kubernetes pass on `allot apiserver`, except those that wait for another part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain

import pytest

from tests.acceptance.api_server_scenarios import (
    ON_SQLITE,
    RUNNING,
    WAITING,
    WITH_SCHEDULER,
    WITH_STAND_IN,
)
from tests.acceptance.runner.acceptance import AcceptanceRunner
from tests.acceptance.runner.scenarios import Scenario, load_scenarios
from tests.acceptance.stand_in import stand_in_scheduler

SCENARIOS = load_scenarios()
SCENARIO_BY_NAME = {each.name: each for file in SCENARIOS.values() for each in file}


def named(names: Sequence[str]) -> pytest.MarkDecorator:
    cases = [pytest.param(SCENARIO_BY_NAME[name], id=name) for name in names]
    return pytest.mark.parametrize("scenario", cases)


def run(runner: AcceptanceRunner, scenario: Scenario) -> None:
    missing = runner.reason_to_skip(scenario)
    if missing:
        pytest.skip(missing)
    is_helped = scenario.name in WITH_STAND_IN
    with stand_in_scheduler(runner.client) if is_helped else nullcontext():
        runner.run(scenario)


@named(RUNNING)
def test_scenario(scenario: Scenario, memory_runner: AcceptanceRunner) -> None:
    run(memory_runner, scenario)


@named(ON_SQLITE)
def test_scenario_on_sqlite(scenario: Scenario, sqlite_runner: AcceptanceRunner) -> None:
    run(sqlite_runner, scenario)


@named(WITH_SCHEDULER)
def test_scenario_with_scheduler(scenario: Scenario, scheduled_runner: AcceptanceRunner) -> None:
    run(scheduled_runner, scenario)


def test_every_scenario_runs_or_waits() -> None:
    names = Counter(each.name for file in SCENARIOS.values() for each in file)

    waiting = chain.from_iterable(WAITING.values())
    assert names == Counter([*RUNNING, *WITH_SCHEDULER, *waiting])


def test_no_file_is_missing() -> None:
    assert {name: len(scenarios) for name, scenarios in SCENARIOS.items()} == {
        "4381-base-dra": 25,
        "4816-prioritized-list": 16,
        "5007-binding-conditions": 10,
        "5075-consumable-capacity": 20,
        "5677-pool-status": 14,
        "6080-derived-attributes": 12,
        "api-machinery": 26,
        "kubectl": 14,
    }


def test_the_stand_in_helps_only_scenarios_that_run() -> None:
    assert set(RUNNING) >= WITH_STAND_IN
