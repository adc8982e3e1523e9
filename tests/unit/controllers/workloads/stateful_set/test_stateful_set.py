"""Stateful sets: identity, order, updates."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.resources import STATEFUL_SETS
from allot.controllers.workloads.revisions import REVISION_HASH, make_revision
from allot.controllers.workloads.stateful_set.decision import (
    Revisions,
    by_ordinal,
    plan_pods,
    stateful_set_status,
)
from allot.controllers.workloads.stateful_set.identity import make_claims, make_pod, ordinal_of
from tests.unit.controllers.workloads.objects import LABELS, NOW, a_replica, a_workload

REVISIONS = Revisions("old", "new")


def a_stateful_set(replicas: int = 3, **rest: Any) -> RawObject:
    rolling = {"partition": rest.pop("partition", 0)}
    if "unavailable" in rest:
        rolling["maxUnavailable"] = rest.pop("unavailable")
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = {"replicas": replicas, "updateStrategy": strategy, "serviceName": "svc", **rest}
    return a_workload("db", kind="StatefulSet", **spec)


def pod(ordinal: int, revision: str = "new", **rest: Any) -> Pod:
    return a_replica(f"db-{ordinal}", labels={**LABELS, REVISION_HASH: revision}, **rest)


def planned(stateful_set: RawObject, *pods: Pod) -> tuple[list[Any], list[str]]:
    plan = plan_pods(stateful_set, by_ordinal(stateful_set, pods), REVISIONS, NOW)
    gone = [found.get("metadata", "name") for found in (*plan.delete, *plan.failed)]
    return list(plan.create), gone


def test_a_pod_knows_who_it_is() -> None:
    stateful_set = a_stateful_set(
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"x": 1}}]
    )
    revision = make_revision(STATEFUL_SETS, stateful_set, 1)
    made = make_pod(stateful_set, 2, revision)

    assert made.get("metadata", "name") == "db-2"
    labels = made.get("metadata", "labels")
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-2"
    assert labels["apps.kubernetes.io/pod-index"] == "2"
    assert labels[REVISION_HASH] == revision.get("metadata", "name")
    assert made.get("spec", "hostname") == "db-2"
    assert made.get("spec", "subdomain") == "svc"
    assert made.get("spec", "volumes") == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}}
    ]
    (claim,) = make_claims(stateful_set, 2)
    assert claim.get("metadata", "name") == "data-db-2"
    assert claim.get("metadata", "labels") == LABELS
    assert claim.get("spec") == {"x": 1}


@pytest.mark.parametrize(
    ("name", "ordinal"), [("db-3", 3), ("db-03", None), ("db", None), ("db-x-1", None)]
)
def test_numbers_are_read_from_names(name: str, ordinal: int | None) -> None:
    assert ordinal_of(a_stateful_set(), a_replica(name)) == ordinal


# --- in order ---


@pytest.mark.parametrize(
    ("pods", "created", "deleted"),
    [
        pytest.param([], [(0, "new")], [], id="first"),
        pytest.param([pod(0)], [(1, "new")], [], id="next"),
        pytest.param([pod(0, ready=False)], [], [], id="waits-for-ready"),
        pytest.param([pod(1), pod(2)], [(0, "new")], [], id="hole"),
        pytest.param([pod(0, deleting=True), pod(1)], [], [], id="waits-for-the-end"),
        pytest.param([pod(0, phase="Failed")], [], ["db-0"], id="failed-is-made-again"),
        pytest.param([pod(n) for n in range(5)], [], ["db-4"], id="from-the-end"),
        pytest.param(
            [*(pod(n) for n in range(4)), pod(4, deleting=True)], [], [], id="one-at-a-time"
        ),
        pytest.param(
            [pod(0, ready=False), *(pod(n) for n in range(1, 5))], [], [], id="first-all-well"
        ),
    ],
)
def test_in_order(pods: list[Pod], created: list[Any], deleted: list[str]) -> None:
    assert planned(a_stateful_set(), *pods) == (created, deleted)


def test_at_once() -> None:
    stateful_set = a_stateful_set(podManagementPolicy="Parallel")

    assert planned(stateful_set, pod(1, ready=False), pod(3), pod(4)) == (
        [(0, "new"), (2, "new")],
        ["db-4", "db-3"],
    )


def test_numbers_may_start_elsewhere() -> None:
    stateful_set = a_stateful_set(2, ordinals={"start": 5})

    assert planned(stateful_set, pod(5)) == ([(6, "new")], [])


def test_available_takes_a_while() -> None:
    stateful_set = a_stateful_set(minReadySeconds=50)

    assert planned(stateful_set, pod(0, ready_for=49)) == ([], [])
    assert planned(stateful_set, pod(0, ready_for=50)) == ([(1, "new")], [])


# --- updates ---


def old(*ordinals: int) -> list[Pod]:
    return [pod(ordinal, "old") for ordinal in ordinals]


def test_updates_come_from_the_end() -> None:
    assert planned(a_stateful_set(), *old(0, 1, 2)) == ([], ["db-2"])
    assert planned(a_stateful_set(), *old(0, 1), pod(2)) == ([], ["db-1"])
    assert planned(a_stateful_set(), *old(0, 1), pod(2, ready=False)) == ([], [])


def test_an_old_pod_that_never_works_does_not_stop_the_update() -> None:
    broken = pod(2, "old", ready=False)

    assert planned(a_stateful_set(), *old(0, 1), broken) == ([], ["db-2"])


def test_a_partition_keeps_the_lower_numbers() -> None:
    stateful_set = a_stateful_set(partition=2)

    assert planned(stateful_set, *old(0, 1), pod(2)) == ([], [])
    assert planned(stateful_set, *old(0), pod(2)) == ([(1, "old")], [])


def test_several_may_be_missing() -> None:
    stateful_set = a_stateful_set(unavailable=2, podManagementPolicy="Parallel")

    assert planned(stateful_set, *old(0, 1, 2)) == ([], ["db-2", "db-1"])


def test_on_delete_nothing_is_replaced() -> None:
    stateful_set = a_stateful_set(updateStrategy={"type": "OnDelete"})

    assert planned(stateful_set, *old(0, 1, 2)) == ([], [])
    assert planned(stateful_set, *old(0, 1)) == ([(2, "new")], [])


def test_the_status_turns_when_the_update_is_done() -> None:
    stateful_set = a_stateful_set(2)
    half = stateful_set_status(stateful_set, [*old(0), pod(1)], REVISIONS, NOW)
    done = stateful_set_status(stateful_set, [pod(0), pod(1)], REVISIONS, NOW)

    assert (half["currentRevision"], half["currentReplicas"], half["updatedReplicas"]) == (
        "old",
        1,
        1,
    )
    assert (done["currentRevision"], done["currentReplicas"], done["updatedReplicas"]) == (
        "new",
        2,
        2,
    )


# --- absurd numbers ---

MOST = 2**31 - 1


def test_of_very_many_pods_a_bounded_number_is_made_and_deleted_at_once() -> None:
    """2,147,483,647 replicas cannot even be counted through in time."""
    parallel = a_stateful_set(MOST, podManagementPolicy="Parallel")
    made, _ = planned(parallel, pod(0), pod(7))
    assert [ordinal for ordinal, _ in made] == [*range(1, 7), *range(8, 502)]
    assert planned(a_stateful_set(MOST), pod(0)) == ([(1, "new")], [])

    none = a_stateful_set(0, podManagementPolicy="Parallel")
    _, gone = planned(none, *(pod(ordinal) for ordinal in range(2000)))
    assert gone == [f"db-{ordinal}" for ordinal in range(1999, 1499, -1)]
