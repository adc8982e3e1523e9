from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from allot.client.errors import TransportError
from allot.client.event_recorder import EventRecorder
from allot.client.events import ObjectReference
from allot.scheduler.core.pod_status import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    PodStatusReporter,
    status_change,
)
from allot.scheduler.framework.fit_errors import no_node_fits
from allot.scheduler.framework.status import unresolvable
from allot.scheduler.state.pods import PodInfo
from tests.unit.client.fakes import START, answer, scripted
from tests.unit.scheduler.state.objects import a_pod_info

NOW = "2026-01-01T00:00:00Z"
BEFORE = "2025-12-31T00:00:00Z"


def a_condition(reason: str = UNSCHEDULABLE, message: str = "why", **fields: Any) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": NOW,
    } | fields


def with_status(*conditions: Mapping[str, Any], **status: Any) -> PodInfo:
    return a_pod_info(status={"conditions": list(conditions), **status})


@pytest.mark.parametrize(
    ("pod", "nominated", "change"),
    [
        pytest.param(a_pod_info(), None, {"conditions": [a_condition()]}, id="the-first-time"),
        pytest.param(with_status(a_condition()), None, None, id="nothing-new"),
        pytest.param(
            with_status(a_condition(lastTransitionTime=BEFORE, message="other")),
            None,
            {"conditions": [a_condition(lastTransitionTime=BEFORE)]},
            id="another-message-is-no-transition",
        ),
        pytest.param(
            with_status(a_condition(reason=SCHEDULER_ERROR, lastTransitionTime=BEFORE)),
            None,
            {"conditions": [a_condition(lastTransitionTime=BEFORE)]},
            id="another-reason-is-no-transition",
        ),
        pytest.param(
            with_status(a_condition(status="True", lastTransitionTime=BEFORE)),
            None,
            {"conditions": [a_condition()]},
            id="another-status-is-one",
        ),
        pytest.param(
            with_status({"type": "Ready", "status": "False"}),
            None,
            {"conditions": [a_condition()]},
            id="other-conditions-are-not-ours",
        ),
        pytest.param(
            a_pod_info(metadata={"generation": 3}),
            None,
            {"conditions": [a_condition(observedGeneration=3)]},
            id="of-a-generation",
        ),
        pytest.param(
            with_status(a_condition()), "n1", {"nominatedNodeName": "n1"}, id="a-nomination"
        ),
        pytest.param(
            with_status(a_condition(), nominatedNodeName="n1"), "n1", None, id="the-same-nomination"
        ),
        pytest.param(
            with_status(a_condition(), nominatedNodeName="n1"),
            "",
            {"nominatedNodeName": None},
            id="a-nomination-is-taken-back",
        ),
        pytest.param(
            with_status(a_condition(), nominatedNodeName="n1"),
            None,
            None,
            id="a-nomination-is-left-alone",
        ),
        pytest.param(with_status(a_condition()), "", None, id="there-was-none-to-take-back"),
    ],
)
def test_pod_status_patch(
    pod: PodInfo, nominated: str | None, change: dict[str, Any] | None
) -> None:
    assert status_change(pod, UNSCHEDULABLE, "why", nominated, START) == change


class Heard(EventRecorder):
    """Remembers events instead of writing them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str, str]] = []
        self.versions: list[str] = []

    def event(
        self,
        regarding: ObjectReference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
        annotations: Mapping[str, str] | None = None,
        *,
        is_routine: bool = False,
    ) -> None:
        self.events.append((regarding.name, type_, reason, action, note))
        self.versions.append(regarding.resource_version)


def test_a_failure_is_an_event_and_one_patch_of_the_status() -> None:
    client, transport, clock = scripted(answer(200, {"metadata": {}}))
    heard = Heard()
    outcomes = PodStatusReporter(client, heard, clock.today)

    pod = a_pod_info(metadata={"resourceVersion": "7"})
    asyncio.run(outcomes.failed(pod, UNSCHEDULABLE, "why"))

    (request,) = transport.requests
    assert (request.method, request.path) == (
        "PATCH",
        "/api/v1/namespaces/default/pods/pod/status",
    )
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.body == {
        "metadata": {"uid": "uid-default-pod", "resourceVersion": "7"},
        "status": {"conditions": [a_condition()]},
    }
    assert heard.events == [("pod", "Warning", "FailedScheduling", "Scheduling", "why")]
    assert heard.versions == ["7"]


CONFLICT = answer(409, {"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409})


@pytest.mark.parametrize(
    ("found", "methods"),
    [
        pytest.param({"nodeName": "n1"}, ["PATCH", "GET"], id="bound-meanwhile"),
        pytest.param({}, ["PATCH", "GET", "PATCH"], id="changed-meanwhile"),
    ],
)
def test_the_condition_of_a_bound_pod_is_not_overwritten(
    found: dict[str, str], methods: list[str]
) -> None:
    current = {"metadata": {"uid": "uid-default-pod", "resourceVersion": "8"}, "spec": found}
    client, transport, clock = scripted(
        CONFLICT, answer(200, current), answer(200, {"metadata": {}})
    )
    pod = a_pod_info(metadata={"resourceVersion": "7"})

    asyncio.run(PodStatusReporter(client, Heard(), clock.today).failed(pod, UNSCHEDULABLE, "why"))

    assert [request.method for request in transport.requests] == methods
    if len(methods) == 3:
        assert transport.requests[-1].body["metadata"]["resourceVersion"] == "8"


def test_an_unchanged_pod_status_is_not_written() -> None:
    client, transport, clock = scripted()
    heard = Heard()

    asyncio.run(
        PodStatusReporter(client, heard, clock.today).failed(
            with_status(a_condition()), UNSCHEDULABLE, "why"
        )
    )

    assert transport.requests == []
    assert len(heard.events) == 1


@pytest.mark.parametrize(
    ("trouble", "level"),
    [
        pytest.param(answer(404), "DEBUG", id="deleted"),
        pytest.param(answer(409), "WARNING", id="another-pod"),
        pytest.param(TransportError("", was_sent=True), "WARNING", id="no-server"),
    ],
)
def test_a_condition_that_cannot_be_written_is_only_logged(
    trouble: Any, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "allot.scheduler.core.pod_status")
    client, _, clock = scripted(*[trouble] * 20)

    asyncio.run(
        PodStatusReporter(client, Heard(), clock.today).failed(a_pod_info(), UNSCHEDULABLE, "why")
    )

    (record,) = [
        each for each in caplog.records if "cannot write the PodScheduled condition" in each.message
    ]
    assert record.levelname == level


def test_other_events() -> None:
    client, transport, clock = scripted()
    heard = Heard()
    outcomes = PodStatusReporter(client, heard, clock.today)

    outcomes.scheduled(a_pod_info(), "n1")
    outcomes.skipped(a_pod_info())

    assert heard.events == [
        ("pod", "Normal", "Scheduled", "Binding", "Successfully assigned default/pod to n1"),
        (
            "pod",
            "Warning",
            "FailedScheduling",
            "Scheduling",
            "skip schedule deleting pod: default/pod",
        ),
    ]
    assert transport.requests == []


def test_the_message_as_kubernetes_words_it() -> None:
    statuses = [
        *[unresolvable("cannot allocate all claims")] * 7,
        unresolvable("invalid resource pools were encountered"),
    ]

    message = no_node_fits(
        8,
        statuses,
        post_filter_message=(
            "preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
        ),
    )

    assert message == (
        "0/8 nodes are available: 1 invalid resource pools were encountered, "
        "7 cannot allocate all claims. preemption: 0/8 nodes are available: "
        "8 Preemption is not helpful for scheduling."
    )
