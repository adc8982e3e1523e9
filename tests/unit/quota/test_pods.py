"""What pods count for, what they must say, and in which scopes they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.quota import pods
from allot.quota.amounts import as_json
from allot.testing.builders import a_pod

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


def a_container(
    name: str = "c", limits: dict[str, str] | None = None, **requests: str
) -> dict[str, Any]:
    asked = {key.replace("_", "-"): value for key, value in requests.items()}
    return {"name": name, "resources": {"requests": asked, "limits": limits or {}}}


def pod_of(*containers: dict[str, Any], **fields: Any) -> Pod:
    return a_pod("p", containers=list(containers), **fields)


def test_containers_add_up_and_init_containers_run_alone() -> None:
    pod = pod_of(
        a_container(cpu="1", memory="1Gi"),
        a_container("d", {"cpu": "2"}, cpu="500m"),
        initContainers=[
            {**a_container("side", cpu="250m"), "restartPolicy": "Always"},
            a_container("big", cpu="3"),
        ],
        overhead={"cpu": "10m", "memory": "1Mi"},
    )

    assert as_json(pods.pod_usage(pod, NOW)) == {
        "count/pods": "1",
        "cpu": "3260m",
        "limits.cpu": "2010m",
        "memory": "1025Mi",
        "pods": "1",
        "requests.cpu": "3260m",
        "requests.memory": "1025Mi",
    }


def test_the_pod_as_a_whole_has_the_last_word() -> None:
    pod = pod_of(a_container(cpu="1"), resources={"requests": {"cpu": "4"}})

    assert str(pods.pod_usage(pod, NOW)["requests.cpu"]) == "4"


def test_resources_of_others_count_under_their_names() -> None:
    resources = {
        "requests": {
            "example.com/gpu": "2",
            "deviceclass.resource.kubernetes.io/fast": "1",
            "hugepages-2Mi": "4Mi",
        }
    }
    usage = pods.pod_usage(pod_of({"name": "c", "resources": resources}), NOW)

    assert (
        as_json(usage).items()
        >= {
            "requests.example.com/gpu": "2",
            "requests.deviceclass.resource.kubernetes.io/fast": "1",
            "hugepages-2Mi": "4Mi",
            "requests.hugepages-2Mi": "4Mi",
        }.items()
    )
    assert "example.com/gpu" not in usage
    assert all(pods.counts_pods(name) for name in usage)
    assert not any(map(pods.counts_pods, ("services", "requests.storage", "count/jobs.batch")))


def test_pods_that_have_ended_are_only_counted() -> None:
    done = pod_of(a_container(cpu="1"), status={"phase": "Failed"})
    metadata = {"deletionTimestamp": "2026-01-01T00:59:00Z", "deletionGracePeriodSeconds": 30}
    late = RawObject({**pod_of(a_container(cpu="1")).data, "metadata": metadata})

    assert pods.pod_usage(done, NOW).keys() == {"count/pods"}
    assert pods.pod_usage(late, NOW).keys() == {"count/pods"}


def test_containers_must_specify_the_resources_of_a_quota() -> None:
    pod = pod_of(a_container("b", memory="1"), a_container("a", {"cpu": "1"}, cpu="1"))
    names = ["requests.cpu", "limits.memory", "pods", "requests.ephemeral-storage"]

    assert (
        pods.missing_amounts(pod, names)
        == "must specify limits.memory for: a,b; requests.cpu for: b"
    )
    assert not pods.missing_amounts(pod, ["pods"])
    whole = pod_of(a_container("b"), resources={"requests": {"cpu": "1"}})
    assert not pods.missing_amounts(whole, ["requests.cpu"])


ELSEWHERE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"namespaces": ["x"], "topologyKey": "t"}
        ]
    }
}


@pytest.mark.parametrize(
    ("pod", "scopes"),
    [
        (pod_of(a_container()), {"NotTerminating", "BestEffort"}),
        (pod_of(a_container(cpu="1")), {"NotTerminating", "NotBestEffort"}),
        (
            pod_of(a_container(), activeDeadlineSeconds=5, affinity=ELSEWHERE),
            {"Terminating", "BestEffort", "CrossNamespacePodAffinity"},
        ),
        (
            pod_of(a_container(limits={"memory": "1"}), priorityClassName="high"),
            {"NotTerminating", "NotBestEffort", "PriorityClass"},
        ),
    ],
)
def test_scopes(pod: RawObject, scopes: set[str]) -> None:
    known = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "Unheard",
    ]

    assert {scope for scope in known if pods.matches_scope(pod, scope, "Exists", ())} == scopes


@pytest.mark.parametrize(
    ("operator", "high", "none"),
    [("In", True, False), ("NotIn", False, True), ("Exists", True, False)],
)
def test_priority_classes_are_selected(operator: str, high: bool, none: bool) -> None:
    for name, expected in (("high", high), ("", none)):
        pod = pod_of(priorityClassName=name)
        assert pods.matches_scope(pod, "PriorityClass", operator, ["high"]) is expected
