"""Reasons are shared, found while nothing else is to be done, and within an allowance. Costs are counted, not timed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.slices import Device
from allot.scheduler.core.decisions import CycleError, NoNode
from allot.scheduler.core.failure_explainer import UnschedulablePod
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.explain import failure_reasons
from allot.scheduler.explain.failure_reasons import (
    MAX_SAVED_SECONDS,
    MAX_SECONDS,
    FailureReasons,
    TimeBudget,
)
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.node_statuses import NodeStatuses
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.testing.builders import (
    DRIVER,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_allocation,
    an_exact_request,
)
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.state.objects import a_node_facts

TWO = a_request("r", an_exact_request(count=2))


class Stage:
    """Nodes with one device each, and pods that ask for two."""

    def __init__(
        self, nodes: int = 20, pods: int = 10, devices: Sequence[Device] = (a_device("gpu-0"),)
    ) -> None:
        claims = [a_stored_claim(f"c{n}", TWO) for n in range(pods)]
        self.bench = Bench(
            *claims,
            nodes=[a_node_facts(f"n{n}") for n in range(nodes)],
            slices=[a_slice(*devices, name=f"n{n}", node=f"n{n}") for n in range(nodes)],
        )
        self.profile = Profile("default-scheduler", [self.bench.plugin])
        self.now = 0.0
        self.is_idle = True
        self.reasons = FailureReasons(self.bench.cluster, lambda: self.is_idle, lambda: self.now)

    def rejected(self, number: int) -> UnschedulablePod:
        pod = a_pod_with_claims(f"c{number}", pod=f"p{number}")
        state = CycleState()
        assert self.bench.plugin.pre_filter(state, pod, self.bench.cluster).status.is_success
        statuses = NodeStatuses(
            (node.name, self.bench.plugin.filter(state, pod, node).by(NAME))
            for node in self.bench.cluster.nodes
        )
        decision = NoNode(state, statuses, "", frozenset({NAME}), frozenset())
        return UnschedulablePod(self.profile, pod, decision)

    def passes(self, seconds: float) -> float:
        """What a clock shows on which so much time passes whenever it is looked at."""
        self.now += seconds
        return self.now

    def take(self, node: str, namespace: str = "default") -> None:
        """Another claim gets the node's device."""
        allocation = an_allocation("gpu-0", pool=node)
        claim = a_stored_claim(f"of-{node}", allocation=allocation)
        metadata = replace(claim.metadata, namespace=namespace)
        self.bench.tracker.put(replace(claim, metadata=metadata))


def test_pods_that_ask_for_the_same_share_a_reason_under_their_own_names() -> None:
    stage = Stage()

    told = [stage.reasons.of(stage.rejected(number)) for number in range(10)]

    assert told == [
        f"On node n0, request r of claim default/c{number} finds 1 of 2 devices;"
        f" there are no more devices. What would help: claim default/c{number}, request r:"
        " ask for 1 device instead of 2."
        for number in range(10)
    ]
    assert stage.reasons.explanations == 1, "all nodes look alike"


def test_a_reason_is_found_anew_when_devices_of_its_nodes_change() -> None:
    stage = Stage(nodes=3)
    stage.reasons.of(stage.rejected(0))
    before = stage.reasons.explanations

    stage.take("n2")
    stage.reasons.of(stage.rejected(1))
    assert stage.reasons.explanations == before, "it rests on another node"

    stage.take("n0")
    reason = stage.reasons.of(stage.rejected(2))
    assert stage.reasons.explanations > before
    assert reason is not None
    assert "On node n1, request r of claim default/c2" in reason, "which comes nearest by now"


def test_claims_of_other_namespaces_are_not_named() -> None:
    stage = Stage(nodes=1)
    stage.take("n0", "team-a")
    reason = stage.reasons.of(stage.rejected(0))

    assert reason is not None
    assert "team-a" not in reason
    assert "of-n0" not in reason
    assert "gpu-0: held by a claim in another namespace" in reason

    own = Stage(nodes=1)
    own.take("n0")
    assert "gpu-0: held by claim default/of-n0" in (own.reasons.of(own.rejected(0)) or "")


def test_an_attempt_that_ends_in_an_error_says_which_devices_lack_what() -> None:
    devices = [a_device(f"gpu-{number}", {"model": "h100"}) for number in range(3)]
    stage = Stage(nodes=2, pods=0, devices=devices)
    selector = a_selector(f'device.attributes["{DRIVER}"].modle == "h100"')
    request = a_request("r", an_exact_request(selectors=(selector,)))
    stage.bench.tracker.put(a_stored_claim("c0", request))
    pod = a_pod_with_claims("c0", pod="p0")
    cycle = SchedulingCycle(stage.profile, stage.bench.cluster)
    decision = cycle.decide(pod)

    assert isinstance(decision, CycleError)
    reason = stage.reasons.of_error(stage.profile, pod, decision)
    assert reason == (
        "On node n0, request r of claim default/c0 finds 0 of 1 device; gpu-0, gpu-1, gpu-2:"
        f" selector #0 reads {DRIVER}/modle, which is not set:"
        f' device.attributes["{DRIVER}"].modle == "h100"; did you mean {DRIVER}/model?'
        " What would help: claim default/c0, request r:"
        f" write {DRIVER}/model instead of {DRIVER}/modle in selector #0."
    )


def test_a_class_that_does_not_exist_and_one_with_a_similar_name() -> None:
    stage = Stage(nodes=1, pods=0)
    request = a_request("r", an_exact_request(device_class_name="gpus.example.com"))
    stage.bench.tracker.put(a_stored_claim("c0", request))
    pod = a_pod_with_claims("c0", pod="p0")
    decision = SchedulingCycle(stage.profile, stage.bench.cluster).decide(pod)

    assert isinstance(decision, NoNode)
    assert stage.reasons.of(UnschedulablePod(stage.profile, pod, decision)) == (
        "Did you mean device class gpu.example.com instead of gpus.example.com?"
    )


def test_nothing_is_explained_while_pods_wait_to_be_tried() -> None:
    stage = Stage()
    stage.is_idle = False

    assert stage.reasons.of(stage.rejected(0)) is None
    assert stage.reasons.explanations == 0

    stage.is_idle = True
    stage.reasons.of(stage.rejected(0))
    stage.is_idle = False
    assert stage.reasons.of(stage.rejected(1)), "what is known is told at once"
    assert stage.reasons.explanations == 1


def test_time_for_explaining_is_earned_by_deciding() -> None:
    times = [0.0]
    time_budget = TimeBudget(lambda: times[-1])

    def is_left() -> bool:
        return time_budget.is_left

    time_budget.spend(MAX_SAVED_SECONDS + 0.1)
    assert not is_left()

    time_budget.earn(0.89)
    assert not is_left()
    time_budget.earn(0.02)
    assert is_left(), "a tenth of one second was for explaining"

    time_budget.earn(1e6)
    time_budget.spend(MAX_SAVED_SECONDS)
    assert not is_left(), "not much can be saved up"
    times.append(1.0)
    assert is_left(), "in idle times there is a little"


def test_a_slow_explanation_is_the_last_for_a_while() -> None:
    stage = Stage(pods=3)
    stage.reasons.time_budget.spend(MAX_SAVED_SECONDS)

    assert stage.reasons.of(stage.rejected(0)) is None

    stage.now = 1000.0
    assert stage.reasons.of(stage.rejected(0))


def test_an_explanation_that_takes_too_long_is_given_up_and_not_tried_again() -> None:
    others = [a_device(f"other-{number}", {"model": "b"}) for number in range(2000)]
    stage = Stage(nodes=1, pods=2, devices=others)
    tick = MAX_SECONDS / 3
    stage.reasons = FailureReasons(stage.bench.cluster, lambda: True, lambda: stage.passes(tick))

    assert [stage.reasons.of(stage.rejected(number)) for number in range(2)] == ["", ""]
    assert stage.reasons.explanations == 1


def test_nodes_are_looked_at_while_there_is_time() -> None:
    stage = Stage(nodes=6)
    for number in range(3):
        stage.take(f"n{number}")
    tick = MAX_SECONDS * 0.6
    stage.reasons = FailureReasons(stage.bench.cluster, lambda: True, lambda: stage.passes(tick))

    assert stage.reasons.of(stage.rejected(0))
    assert stage.reasons.explanations == 1, "there are two kinds of nodes, and time for one"


def played(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_those_that_could_not_be_told_are_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_reasons, "IDLE_POLL_SECONDS", 0.0)

    async def story() -> None:
        stage = Stage()
        stage.is_idle = False
        told: list[str] = []

        async def tell(reason: str) -> None:
            told.append(reason)

        starts = [stage.reasons.report_later(stage.rejected(n), tell) for n in (0, 1, 2, 1)]
        assert starts == [True, False, False, False]
        task = asyncio.create_task(stage.reasons.report_all())
        for _ in range(50):
            await asyncio.sleep(0)
        assert told == []
        assert len(stage.reasons) == 3, "a pod waits once"

        stage.is_idle = True
        await task

        assert [reason.split()[7] for reason in told] == [
            "default/c0",
            "default/c2",
            "default/c1",
        ]
        assert stage.reasons.explanations == 1

    played(story)


def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_reasons, "MAX_WAITING", 4)
    stage = Stage()
    for number in range(10):
        stage.reasons.report_later(stage.rejected(number), lambda _: never())

    assert len(stage.reasons) == 4


async def never() -> None:
    raise AssertionError
