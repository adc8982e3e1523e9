"""The condition `DisruptionTarget`, and deletes with the pod's uid as precondition."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.core import Pod
from allot.client.errors import ApiStatusError
from allot.client.transport import Response
from allot.controllers.pod_disruption import Disruption, disrupt, disruption_patch
from allot.testing.builders import a_pod
from tests.unit.client.fakes import answer, scripted, status

TODAY = datetime(2026, 1, 1, tzinfo=UTC)
WHY = Disruption("Reason", "in words")
SAID = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "Reason",
    "message": "in words",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def in_phase(phase: str = "Running", *conditions: dict[str, Any], uid: str = "u") -> Pod:
    return a_pod("p", namespace="ns", uid=uid, phase=phase, conditions=conditions)


@pytest.mark.parametrize(
    ("pod", "why", "fail", "told"),
    [
        pytest.param(in_phase(), WHY, False, {"conditions": [SAID]}, id="why"),
        pytest.param(in_phase("Running", SAID), WHY, False, None, id="known"),
        pytest.param(
            in_phase("Running", {**SAID, "reason": "Other", "lastTransitionTime": "before"}),
            WHY,
            False,
            {"conditions": [{**SAID, "lastTransitionTime": "before"}]},
            id="another-reason-since-the-same-time",
        ),
        pytest.param(
            in_phase("Running", {**SAID, "status": "False", "lastTransitionTime": "before"}),
            WHY,
            False,
            {"conditions": [SAID]},
            id="true-since-now",
        ),
        pytest.param(in_phase("Succeeded"), WHY, False, {"conditions": [SAID]}, id="finished"),
        pytest.param(in_phase(), WHY, True, {"phase": "Failed", "conditions": [SAID]}, id="fails"),
        pytest.param(in_phase(), None, True, {"phase": "Failed"}, id="fails-without-a-word"),
        pytest.param(in_phase("Succeeded"), WHY, True, None, id="what-has-finished-cannot-fail"),
    ],
)
def test_the_disruption_target_condition(
    pod: Pod, why: Disruption | None, fail: bool, told: dict[str, Any] | None
) -> None:
    patch = disruption_patch(pod, why, TODAY, fail=fail)
    assert patch == (None if told is None else {"metadata": {"uid": "u"}, "status": told})


def test_this_very_pod_is_deleted() -> None:
    client, transport, _ = scripted(answer(200, in_phase().data), answer(200))
    assert asyncio.run(disrupt(client, in_phase(), WHY, grace_seconds=0))
    patch, delete = transport.requests
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/namespaces/ns/pods/p/status")
    assert patch.body["metadata"]["uid"] == "u"
    assert delete.method == "DELETE"
    assert delete.body["preconditions"] == {"uid": "u"}
    assert delete.body["gracePeriodSeconds"] == 0


def listed(*pods: Pod) -> Response:
    return answer(200, {"metadata": {"resourceVersion": "1"}, "items": [pod.data for pod in pods]})


CONFLICT = answer(409, status(409, "Conflict"))


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([answer(404)], id="gone"),
        pytest.param([CONFLICT, listed()], id="gone-when-looked-for"),
        pytest.param([CONFLICT, listed(in_phase(uid="v"))], id="replaced"),
    ],
)
def test_a_pod_that_is_gone_is_no_trouble(answers: list[Response]) -> None:
    client, _, _ = scripted(*answers)
    assert not asyncio.run(disrupt(client, in_phase(), WHY))


def test_a_conflict_about_the_same_pod_is_trouble() -> None:
    client, _, _ = scripted(CONFLICT, listed(in_phase()))
    with pytest.raises(ApiStatusError):
        asyncio.run(disrupt(client, in_phase(), WHY))
