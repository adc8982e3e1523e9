"""Deployments: sizes of replica sets, revisions, progress."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.controllers.workloads.deployment import progress
from allot.controllers.workloads.deployment import replica_sets as sets
from allot.controllers.workloads.deployment.sizes import (
    RollingBounds,
    first_size,
    next_size_of_new,
    next_sizes_of_old,
    rolling_bounds,
    scaled_sizes,
)
from tests.unit.controllers.workloads.objects import NOW, a_set, a_workload, ago


def a_deployment(
    replicas: int = 10, surge: int | str = 3, unavailable: int | str = 2, **rest: Any
) -> RawObject:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return a_workload(**{"replicas": replicas, "strategy": strategy, **rest})


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "bounds"),
    [
        (10, "25%", "25%", RollingBounds(3, 2)),
        (1, "25%", "25%", RollingBounds(1, 0)),
        (10, 0, 0, RollingBounds(0, 1)),
        (2, 1, 5, RollingBounds(1, 2)),
    ],
)
def test_bounds(
    replicas: int, surge: int | str, unavailable: int | str, bounds: RollingBounds
) -> None:
    assert rolling_bounds(a_deployment(replicas, surge, unavailable)) == bounds


# --- rolling ---


def test_the_new_set_grows_into_the_surge() -> None:
    deployment = a_deployment()

    assert first_size(deployment, []) == 10
    assert first_size(deployment, [a_set("old", 10)]) == 3
    assert next_size_of_new(deployment, a_set("new", 3), [a_set("old", 8)]) == 5
    assert next_size_of_new(deployment, a_set("new", 9), [a_set("old", 1)]) == 10
    assert next_size_of_new(deployment, a_set("new", 5), [a_set("old", 8)]) == 5
    assert next_size_of_new(deployment, a_set("new", 12), []) == 10


def test_recreating_makes_the_new_set_whole_at_once() -> None:
    deployment = a_workload(replicas=4, strategy={"type": "Recreate"})

    assert first_size(deployment, [a_set("old", 4)]) == 4


@pytest.mark.parametrize(
    ("new", "old", "sizes"),
    [
        pytest.param(a_set("new", 3, 0), [a_set("old", 10)], {"old": 8}, id="down-to-the-minimum"),
        pytest.param(a_set("new", 3, 3), [a_set("old", 8)], {"old": 5}, id="new-ones-help"),
        pytest.param(a_set("new", 5, 0), [a_set("old", 8)], {}, id="broken-new-eats-no-old"),
        pytest.param(
            a_set("new", 3, 0), [a_set("old", 10, 8)], {"old": 8}, id="broken-old-go-first"
        ),
        pytest.param(
            a_set("new", 0), [a_set("a", 5, age=9), a_set("b", 5, age=5)], {"a": 3}, id="oldest"
        ),
        pytest.param(a_set("new", 10), [a_set("old", 2)], {"old": 0}, id="the-end"),
    ],
)
def test_old_sets_shrink(new: RawObject, old: list[RawObject], sizes: dict[str, int]) -> None:
    assert next_sizes_of_old(a_deployment(), new, old) == sizes


# --- scaling ---


def test_one_set_takes_it_all() -> None:
    assert scaled_sizes(a_deployment(5), a_set("new", 10), [a_set("old", 0)]) == {"new": 5}
    assert scaled_sizes(a_deployment(5), None, [a_set("old", 10)]) == {"old": 5}
    assert scaled_sizes(a_deployment(5), a_set("new", 0), []) == {"new": 5}


def test_a_rollout_that_is_done_leaves_nothing_of_the_old() -> None:
    assert scaled_sizes(a_deployment(5), a_set("new", 5), [a_set("old", 3)]) == {"old": 0}


@pytest.mark.parametrize(
    ("replicas", "sizes"),
    [
        pytest.param(20, {"old": 14, "new": 9}, id="up"),
        pytest.param(5, {"old": 5, "new": 3}, id="down"),
        pytest.param(0, {"old": 0, "new": 0}, id="to-nothing"),
    ],
)
def test_in_the_middle_of_a_rollout_sets_keep_their_shares(
    replicas: int, sizes: dict[str, int]
) -> None:
    old, new = a_set("old", 8, max_replicas=13), a_set("new", 5, 0, max_replicas=13)

    scaled = scaled_sizes(a_deployment(replicas), new, [old])
    assert scaled == sizes
    assert sum(scaled.values()) == (replicas + 3 if replicas else 0)


# --- sets ---


def test_the_set_of_a_template_is_found_whatever_its_hash() -> None:
    deployment = a_deployment()
    made = sets.make_new_set(deployment, 3, 7)

    assert sets.find_new_set(deployment, [a_set("x", 1, image="i:2"), made]) is made
    assert sets.revision_of(made) == 7
    hash_ = made.get("metadata", "labels", sets.TEMPLATE_HASH)
    assert made.get("metadata", "name") == f"w-{hash_}"
    assert made.get("spec", "selector", "matchLabels") == {"app": "web", sets.TEMPLATE_HASH: hash_}
    assert made.get("spec", "template", "metadata", "labels", sets.TEMPLATE_HASH) == hash_
    assert sets.size_annotations(deployment) == {
        sets.DESIRED_REPLICAS: "10",
        sets.MAX_REPLICAS: "13",
    }


def test_a_set_that_comes_back_gets_the_next_revision_and_remembers_its_last() -> None:
    deployment = a_deployment(annotations={"kubernetes.io/change-cause": "because"})
    old = sets.make_new_set(deployment, 3, 1)

    again = sets.as_new_set(deployment, old, 4)
    assert sets.revision_of(again) == 4
    assert again.get("metadata", "annotations", sets.REVISION_HISTORY) == "1"
    assert again.get("metadata", "annotations", "kubernetes.io/change-cause") == "because"
    assert sets.as_new_set(deployment, again, 4) is again


def test_only_empty_sets_beyond_the_limit_are_forgotten() -> None:
    def an_old_set(revision: int, size: int = 0) -> RawObject:
        found = a_set(f"r{revision}", size).with_value(1, "status", "observedGeneration")
        return sets.with_annotations(found, {sets.REVISION: str(revision)})

    deployment = a_deployment(revisionHistoryLimit=2)
    old = [an_old_set(4), an_old_set(1, size=1), an_old_set(3), an_old_set(2)]

    forgotten = sets.sets_to_forget(deployment, old)
    assert [sets.revision_of(found) for found in forgotten] == [2]


# --- progress ---


def a_progressing(reason: str, seconds: float = 0) -> dict[str, Any]:
    return {
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "reason": reason,
                "lastUpdateTime": ago(seconds),
                "lastTransitionTime": ago(seconds),
            }
        ]
    }


def told(deployment: RawObject, new: RawObject, *old: RawObject) -> dict[str, str]:
    """The reasons of all conditions."""
    everything = (*old, new)
    status = progress.deployment_status(deployment, everything, new, NOW)
    status = progress.with_progress(deployment, status, everything, new, NOW)
    return {found["type"]: found["reason"] for found in status["conditions"]}


def test_a_rollout_that_is_done_says_so() -> None:
    deployment = a_deployment(2, progressDeadlineSeconds=600)

    assert told(deployment, a_set("new", 2)) == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "NewReplicaSetAvailable",
    }


def test_a_rollout_that_moves_says_so() -> None:
    status = a_progressing("NewReplicaSetCreated", 700)
    deployment = a_deployment(2, 1, 0, progressDeadlineSeconds=600, status=status)

    assert told(deployment, a_set("new", 1), a_set("old", 0)) == {
        "Available": "MinimumReplicasUnavailable",
        "Progressing": "ReplicaSetUpdated",
    }


@pytest.mark.parametrize(("seconds", "exceeded"), [(599, False), (601, True)])
def test_a_rollout_that_does_not_move_times_out(seconds: int, exceeded: bool) -> None:
    status = a_progressing("ReplicaSetUpdated", seconds) | {
        "replicas": 3,
        "updatedReplicas": 1,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    deployment = a_deployment(2, progressDeadlineSeconds=600, status=status)

    reasons = told(deployment, a_set("new", 1, 0), a_set("old", 2))
    assert (reasons["Progressing"] == "ProgressDeadlineExceeded") == exceeded


def test_without_a_deadline_nothing_is_said_about_progress() -> None:
    deployment = a_deployment(2, status=a_progressing("ReplicaSetUpdated"))

    assert "Progressing" not in told(deployment, a_set("new", 2))


def test_trouble_of_a_set_is_the_deployments() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    new = a_set("new", 2, 0).with_value([failure], "status", "conditions")

    assert told(a_deployment(2), new)["ReplicaFailure"] == "FailedCreate"


@pytest.mark.parametrize(
    ("paused", "before", "after"),
    [
        (True, "ReplicaSetUpdated", "DeploymentPaused"),
        (True, "DeploymentPaused", None),
        (False, "DeploymentPaused", "DeploymentResumed"),
        (False, "ReplicaSetUpdated", None),
    ],
)
def test_the_paused_condition_is_set_once(paused: bool, before: str, after: str | None) -> None:
    deployment = a_deployment(
        paused=paused, progressDeadlineSeconds=600, status=a_progressing(before)
    )
    condition = progress.pause_condition(deployment)

    assert (condition.reason if condition else None) == after
