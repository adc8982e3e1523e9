"""Subresources of pods and workloads, and how pods are deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.selectors import selects_labels
from allot.apiserver.kinds.eviction import (
    EvictionGranted,
    EvictionRefused,
    decide_eviction,
    evicted,
)
from allot.apiserver.kinds.pod_binding import BindingRefused, bind, validate_binding
from allot.apiserver.kinds.pod_deletion import PodDeletion, graceful_delete
from allot.apiserver.kinds.scale import scale_of, validate_scale, with_scale

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00Z"
EARLIER = "2025-01-01T00:00:00Z"


def a_pod(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any
) -> Pod:
    return Pod(
        {
            "metadata": {"name": "p", "uid": "u"} | metadata,
            "spec": spec or {},
            "status": status or {},
        }
    )


# --- binding ---

BINDING = {
    "metadata": {"name": "p", "annotations": {"a": "new"}, "labels": {"l": "new", "m": "new"}},
    "target": {"kind": "Node", "name": "n"},
}


def test_bind() -> None:
    waiting = {
        "nominatedNodeName": "n",
        "conditions": [
            {"type": "Other", "status": "True"},
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": EARLIER,
            },
        ],
    }
    pod = a_pod(
        status=waiting, annotations={"a": "old", "b": "old"}, labels={"l": "old"}, generation=3
    )

    bound = bind(pod, BINDING, NOW)

    assert isinstance(bound, Pod)
    assert bound.node_name == "n"
    assert bound.metadata.annotations == {"a": "new", "b": "old"}
    assert bound.metadata.labels == {"l": "old", "m": "new"}
    assert bound.metadata.generation == 3
    assert bound.get("status") == {
        "conditions": [
            {"type": "Other", "status": "True"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": TIME},
        ]
    }


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod({"nodeName": "m"}), 'pod p is already assigned to node "m"'),
        (a_pod(deletionTimestamp=TIME), "pod p is being deleted, cannot be assigned to a host"),
        (a_pod({"schedulingGates": [{"name": "g"}]}), "pod p has non-empty .spec.schedulingGates"),
        (
            a_pod(uid="v"),
            "Precondition failed: UID in precondition: u, UID in object meta: v",
        ),
    ],
)
def test_bind_is_refused(pod: Pod, message: str) -> None:
    binding = BINDING | {"metadata": {"uid": "u"}}

    assert bind(pod, binding, NOW) == BindingRefused(message)


@pytest.mark.parametrize(
    ("target", "problems"),
    [
        ({"name": "n"}, []),
        ({}, ["target.name: Required value"]),
        (
            {"kind": "Pod", "name": "n"},
            ['target.kind: Unsupported value: "Pod": supported values: "<empty>", "Node"'],
        ),
    ],
)
def test_binding_is_validated(target: dict[str, Any], problems: list[str]) -> None:
    assert [str(error) for error in validate_binding({"target": target})] == problems


# --- eviction ---

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
RUNNING = a_pod(status=READY, labels={"app": "x"})


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
            [a_budget({"selector": {}}), a_budget({"selector": {"matchLabels": {"app": "y"}}})],
            EvictionGranted(),
            id="budgets-of-others",
        ),
        pytest.param(
            a_pod(status={"phase": "Succeeded"}, labels={"app": "x"}),
            [a_budget()],
            EvictionGranted(),
            id="finished",
        ),
        pytest.param(
            a_pod(status={"phase": "Pending"}, labels={"app": "x"}),
            [a_budget()],
            EvictionGranted(only_this_version=True),
            id="pending",
        ),
        pytest.param(
            a_pod(status=READY, labels={"app": "x"}, deletionTimestamp=TIME),
            [a_budget()],
            EvictionGranted(),
            id="on-its-way",
        ),
        pytest.param(
            a_pod(status={"phase": "Running"}, labels={"app": "x"}),
            [a_budget(currentHealthy=2, desiredHealthy=2)],
            EvictionGranted(only_this_version=True),
            id="unready-and-enough-others",
        ),
        pytest.param(
            a_pod(status={"phase": "Running"}, labels={"app": "x"}),
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
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": TIME,
    }


# --- deletion ---


@pytest.mark.parametrize(
    ("pod", "asked", "seconds"),
    [
        pytest.param(a_pod({"nodeName": "n"}), None, 30, id="default"),
        pytest.param(
            a_pod({"nodeName": "n", "terminationGracePeriodSeconds": 5}), None, 5, id="its-own"
        ),
        pytest.param(a_pod({"nodeName": "n"}), 3, 3, id="asked-for"),
        pytest.param(a_pod({"nodeName": "n"}), 0, 0, id="now"),
        pytest.param(a_pod({"nodeName": "n"}), -1, 1, id="negative"),
        pytest.param(a_pod(), 60, 0, id="runs-nowhere"),
        pytest.param(a_pod({"nodeName": "n"}, {"phase": "Failed"}), 60, 0, id="finished"),
    ],
)
def test_graceful_delete(pod: Pod, asked: int | None, seconds: int) -> None:
    expected = PodDeletion(NOW + timedelta(seconds=seconds), seconds, delete_now=seconds == 0)

    assert graceful_delete(pod, asked, NOW) == expected


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        pytest.param(None, PodDeletion(NOW, 30, False), id="nothing-new"),
        pytest.param(60, PodDeletion(NOW, 30, False), id="longer"),
        pytest.param(10, PodDeletion(NOW - timedelta(seconds=20), 10, False), id="shorter"),
        pytest.param(0, PodDeletion(NOW - timedelta(seconds=30), 0, True), id="at-once"),
    ],
)
def test_a_second_delete_only_shortens(asked: int | None, left: PodDeletion) -> None:
    pod = a_pod({"nodeName": "n"}, deletionTimestamp=TIME, deletionGracePeriodSeconds=30)

    assert graceful_delete(pod, asked, NOW) == left


@pytest.mark.parametrize("asked", [None, 0, 30])
def test_a_pod_that_only_its_finalizers_held_can_go(asked: int | None) -> None:
    pod = a_pod({"nodeName": "n"}, deletionTimestamp=TIME, deletionGracePeriodSeconds=0)

    assert graceful_delete(pod, asked, NOW) == PodDeletion(NOW, 0, delete_now=True)


# --- scale ---

SELECTOR = {
    "matchLabels": {"b": "2"},
    "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "c", "operator": "DoesNotExist"},
    ],
}


def a_workload(kind: str, selector: dict[str, Any]) -> RawObject:
    return RawObject(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "w", "namespace": "n", "resourceVersion": "7", "labels": {}},
            "spec": {"replicas": 3, "selector": selector},
            "status": {"replicas": 2},
        }
    )


@pytest.mark.parametrize(
    ("kind", "selector", "text"),
    [
        ("Deployment", SELECTOR, "a in (x,y),b=2,!c"),
        ("ReplicationController", {"b": "2", "a": "1"}, "a=1,b=2"),
    ],
)
def test_scale(kind: str, selector: dict[str, Any], text: str) -> None:
    assert scale_of(a_workload(kind, selector)) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "n", "resourceVersion": "7"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": text},
    }


def test_a_scale_of_zero_is_not_written_out() -> None:
    workload = a_workload("Deployment", SELECTOR).with_value(0, "spec", "replicas")

    assert scale_of(workload)["spec"] == {}


def test_a_scale_is_written_back() -> None:
    workload = a_workload("Deployment", SELECTOR)

    scaled = with_scale(workload, {"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 5}})

    assert scaled.get("spec") == {"replicas": 5, "selector": SELECTOR}
    assert scaled.metadata.resource_version == "6"
    assert with_scale(workload, {"spec": {}}).get("spec", "replicas") == 0


def test_a_scale_is_not_negative() -> None:
    problems = [str(error) for error in validate_scale({"spec": {"replicas": -1}})]

    assert problems == ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]


# --- label selectors ---


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ({"a": "x", "b": "2"}, True),
        ({"a": "z", "b": "2"}, False),
        ({"b": "2"}, False),
        ({"a": "x"}, False),
        ({"a": "x", "b": "2", "c": ""}, False),
    ],
)
def test_selects(labels: dict[str, str], selected: bool) -> None:
    assert selects_labels(SELECTOR, labels) == selected
