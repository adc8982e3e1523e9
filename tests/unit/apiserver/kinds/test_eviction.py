"""The subresource `eviction` of pods: disruption budgets decide."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.apiserver.kinds.eviction import (
    EvictionGranted,
    EvictionRefused,
    decide_eviction,
    evicted,
)
from allot.testing.builders import a_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00Z"
EARLIER = "2025-01-01T00:00:00Z"
READY = {"Ready": "True"}


def an_app_pod(phase: str = "Running", **fields: Any) -> Pod:
    """A pod that the budgets of `app: x` select."""
    return a_pod("p", phase=phase, metadata={"labels": {"app": "x"}}, **fields)


RUNNING = an_app_pod(conditions=READY)


def a_budget(spec: dict[str, Any] | None = None, name: str = "b", **status: Any) -> RawObject:
    return RawObject(
        {
            "metadata": {"name": name, "generation": 2},
            "spec": {"selector": {"matchLabels": {"app": "x"}}} | (spec or {}),
            "status": {"observedGeneration": 2} | status,
        }
    )


@pytest.mark.parametrize(
    ("pod", "budgets", "granted"),
    [
        pytest.param(RUNNING, [], EvictionGranted(), id="no-budget"),
        pytest.param(
            RUNNING,
            [a_budget({"selector": None}), a_budget({"selector": {"matchLabels": {"app": "y"}}})],
            EvictionGranted(),
            id="budgets-of-others",
        ),
        pytest.param(
            an_app_pod("Succeeded"),
            [a_budget()],
            EvictionGranted(),
            id="finished",
        ),
        pytest.param(
            an_app_pod("Pending"),
            [a_budget()],
            EvictionGranted(only_this_version=True),
            id="pending",
        ),
        pytest.param(
            an_app_pod(conditions=READY, deleting=True),
            [a_budget()],
            EvictionGranted(),
            id="on-its-way",
        ),
        pytest.param(
            an_app_pod(),
            [a_budget(currentHealthy=2, desiredHealthy=2)],
            EvictionGranted(only_this_version=True),
            id="unready-and-enough-others",
        ),
        pytest.param(
            an_app_pod(),
            [a_budget({"unhealthyPodEvictionPolicy": "AlwaysAllow"})],
            EvictionGranted(only_this_version=True),
            id="unready-and-always-allowed",
        ),
    ],
)
def test_eviction_is_granted(pod: Pod, budgets: list[RawObject], granted: EvictionGranted) -> None:
    assert decide_eviction(pod, budgets, NOW) == granted


def test_an_eviction_spends_the_budget() -> None:
    decision = decide_eviction(
        RUNNING, [a_budget(disruptionsAllowed=2, disruptedPods={"o": EARLIER})], NOW
    )

    assert isinstance(decision, EvictionGranted)
    assert decision.budget is not None
    assert decision.budget.get("status") == {
        "observedGeneration": 2,
        "disruptionsAllowed": 1,
        "disruptedPods": {"o": EARLIER, "p": TIME},
    }


def test_the_last_disruption_says_so() -> None:
    allowed = {"type": "DisruptionAllowed", "status": "True", "lastTransitionTime": EARLIER}

    decision = decide_eviction(RUNNING, [a_budget(disruptionsAllowed=1, conditions=[allowed])], NOW)

    assert isinstance(decision, EvictionGranted)
    assert decision.budget is not None
    assert decision.budget.get("status", "conditions") == [
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": 2,
            "lastTransitionTime": TIME,
        }
    ]


WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.mark.parametrize(
    ("budgets", "refused"),
    [
        pytest.param(
            [a_budget(disruptionsAllowed=0, desiredHealthy=2, currentHealthy=1)],
            EvictionRefused(
                429,
                "TooManyRequests",
                WOULD_VIOLATE,
                "The disruption budget b needs 2 healthy pods and has 1 currently",
            ),
            id="spent",
        ),
        pytest.param(
            [a_budget(observedGeneration=1, disruptionsAllowed=5)],
            EvictionRefused(
                429,
                "TooManyRequests",
                WOULD_VIOLATE,
                "The disruption budget b is still being processed by the server.",
                10,
            ),
            id="not-yet-counted",
        ),
        pytest.param(
            [a_budget(), a_budget(name="c")],
            EvictionRefused(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support.",
            ),
            id="several",
        ),
        pytest.param(
            [a_budget(disruptionsAllowed=-1)],
            EvictionRefused(
                403,
                "Forbidden",
                'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
            ),
            id="negative",
        ),
    ],
)
def test_eviction_is_refused(budgets: list[RawObject], refused: EvictionRefused) -> None:
    assert decide_eviction(RUNNING, budgets, NOW) == refused


def test_an_evicted_pod_says_so() -> None:
    assert evicted(RUNNING, NOW).get("status", "conditions", 1) == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": TIME,
    }
