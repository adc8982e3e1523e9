"""What all workloads rest on: names, ownership, own writes, pods that count, pods that go first."""

from __future__ import annotations

import asyncio

import pytest

from allot.api.core import Pod
from allot.api.generated_names import SUFFIX_CHARACTERS
from allot.api.identities import ObjectKey
from allot.client.resources import REPLICA_SETS
from allot.controllers.workloads.conditions import ConditionUpdate, with_condition
from allot.controllers.workloads.expectations import EXPECTATIONS_TIMEOUT_SECONDS, Expectations
from allot.controllers.workloads.int_or_percent import resolve
from allot.controllers.workloads.names import content_hash, generated_name
from allot.controllers.workloads.ownership import classify_objects, orphan_labels, selected_label
from allot.controllers.workloads.pod_ranking import DELETION_COST, pods_to_delete
from allot.controllers.workloads.pod_states import (
    is_active,
    is_available,
    seconds_until_available,
)
from allot.controllers.workloads.pod_templates import pod_from_template
from allot.controllers.workloads.replica_set import replica_set_status
from allot.controllers.workloads.revisions import (
    make_revision,
    revisions_to_forget,
    template_in,
)
from allot.controllers.workloads.status_writes import with_status
from tests.unit.client.fakes import FakeClock
from tests.unit.controllers.workloads.objects import NOW, a_replica, a_workload, ago

KEY = ObjectKey("default", "w")


def test_generated_names_fit() -> None:
    name = generated_name("x" * 100 + "-")

    assert len(name) == 63
    assert set(name[-5:]) <= set(SUFFIX_CHARACTERS)


def test_hashes_differ_by_content_and_collision_only() -> None:
    one = content_hash({"a": 1, "b": {"c": 2, "d": None}})

    assert one == content_hash({"b": {"c": 2}, "a": 1})
    assert one != content_hash({"a": 2, "b": {"c": 2}})
    assert one != content_hash({"a": 1, "b": {"c": 2}}, 1)
    assert set(one) <= set(SUFFIX_CHARACTERS)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [(3, 3, 3), ("25%", 3, 2), ("100%", 10, 10), ("0%", 0, 0), (None, 0, 0), ("junk", 0, 0)],
)
def test_bounds(value: int | str | None, up: int, down: int) -> None:
    assert resolve(value, 10, round_up=True) == up
    assert resolve(value, 10, round_up=False) == down


# --- ownership ---


def test_claims_are_sorted_by_control_and_selector() -> None:
    owner = a_workload()
    mine = a_replica("mine", owner="uid-w")
    strange = a_replica("strange", owner="uid-w", labels={"app": "other"})
    orphan = a_replica("orphan")
    going = a_replica("going", deleting=True)
    other = a_replica("other", labels={})

    claims = classify_objects(owner, [mine, strange], [orphan, going, other])

    assert claims == ((mine,), (orphan,), (strange,))


def test_an_owner_that_is_going_takes_and_leaves_nothing() -> None:
    owner = a_workload().with_value(ago(0), "metadata", "deletionTimestamp")

    claims = classify_objects(
        owner, [a_replica("x", owner="uid-w", labels={})], [a_replica("orphan")]
    )

    assert claims == ((), (), ())


def test_an_empty_selector_takes_nothing() -> None:
    owner = a_workload(selector={})

    assert classify_objects(owner, [], [a_replica()]).to_adopt == ()


def test_orphans_and_those_who_want_them_meet_in_the_index() -> None:
    (place,) = selected_label(a_workload())
    (anywhere,) = selected_label(a_workload(selector={"matchExpressions": [{"key": "app"}]}))

    assert {place, anywhere} <= set(orphan_labels(a_replica()))
    assert place not in orphan_labels(a_replica(labels={"app": "other"}))
    assert not list(orphan_labels(a_replica(owner="other")))


# --- own writes ---


def test_counting_waits_for_own_writes() -> None:
    clock = FakeClock()
    expectations = Expectations(clock)
    expectations.expect_creation(KEY, "p")
    expectations.expect_deletion(KEY, "uid")
    assert expectations.seconds_left(KEY) == EXPECTATIONS_TIMEOUT_SECONDS

    expectations.created(KEY, "p")
    expectations.deleted(KEY, "another uid")
    assert expectations.seconds_left(KEY)

    expectations.deleted(KEY, "uid")
    assert not expectations.seconds_left(KEY)


def test_what_never_comes_back_is_not_waited_for_forever() -> None:
    clock = FakeClock()
    expectations = Expectations(clock)
    expectations.expect_creation(KEY, "p")
    asyncio.run(clock.advance(EXPECTATIONS_TIMEOUT_SECONDS))

    assert not expectations.seconds_left(KEY)


# --- pods ---


def test_active_is_neither_finished_nor_going() -> None:
    assert is_active(a_replica(phase="Pending"))
    assert not is_active(a_replica(phase="Succeeded"))
    assert not is_active(a_replica(phase="Failed"))
    assert not is_active(a_replica(deleting=True))


def test_available_is_ready_for_long_enough() -> None:
    young = a_replica(ready_for=10)

    assert is_available(young, 0, NOW)
    assert is_available(young, 10, NOW)
    assert not is_available(young, 11, NOW)
    assert not is_available(a_replica(ready=False), 0, NOW)
    assert seconds_until_available([young, a_replica(ready=False)], 30, NOW) == 20
    assert seconds_until_available([young], 5, NOW) is None


LESS_MISSED = [
    pytest.param(a_replica("a", node="", phase="Pending"), a_replica("b"), id="no-node"),
    pytest.param(a_replica("a", phase="Pending"), a_replica("b", ready=False), id="pending"),
    pytest.param(a_replica("a", ready=False), a_replica("b"), id="not-ready"),
    pytest.param(
        a_replica("a", annotations={DELETION_COST: "-5"}, ready_for=9999),
        a_replica("b"),
        id="cheaper",
    ),
    pytest.param(a_replica("a", ready_for=10), a_replica("b", ready_for=1000), id="ready-for-less"),
    pytest.param(a_replica("a", restarts=3), a_replica("b"), id="restarted"),
    pytest.param(a_replica("a", age=100), a_replica("b", age=10_000), id="younger"),
]


@pytest.mark.parametrize(("gone", "kept"), LESS_MISSED)
def test_the_pod_that_is_missed_less_goes_first(gone: Pod, kept: Pod) -> None:
    assert pods_to_delete([kept, gone], 1, [kept, gone], NOW) == [gone]


def test_crowded_nodes_give_first() -> None:
    alone, crowded = a_replica("a", node="n1"), a_replica("b", node="n2")
    related = [alone, crowded, a_replica("of another set", node="n2")]

    assert pods_to_delete([alone, crowded], 1, related, NOW) == [crowded]


def test_pods_take_after_their_template_and_name_their_owner() -> None:
    owner = a_workload(kind="ReplicaSet")
    pod = pod_from_template(owner.get("spec", "template"), REPLICA_SETS, owner)

    assert pod.get("metadata", "labels") == {"app": "web"}
    assert pod.get("metadata", "ownerReferences") == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "w",
            "uid": "uid-w",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


# --- statuses ---


def test_replica_set_counts() -> None:
    workload = a_workload(minReadySeconds=50, generation=3)
    pods = [
        a_replica("a"),
        a_replica("b", ready_for=10),
        a_replica("c", phase="Pending", labels={}),
    ]

    assert replica_set_status(workload, pods, None, NOW) == {
        "replicas": 3,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 3,
        "terminatingReplicas": None,
        "conditions": None,
    }


def test_a_status_keeps_what_others_wrote() -> None:
    workload = a_workload(status={"theirs": 1, "old": 2})

    changed = with_status(workload, {"mine": 3, "old": None})
    assert changed.get("status") == {"theirs": 1, "mine": 3}
    assert with_status(changed, {"mine": 3}) is changed


def test_conditions_tell_when_they_changed() -> None:
    ready = ConditionUpdate("Ready", "True", "Yes", "now")
    before = ({"type": "Ready", "status": "True", "reason": "No", "lastTransitionTime": ago(9)},)

    (same_status,) = with_condition(before, ready, NOW)
    assert same_status["lastTransitionTime"] == ago(9)
    assert same_status["reason"] == "Yes"
    (turned,) = with_condition(before, ready._replace(status="False"), NOW)
    assert turned["lastTransitionTime"] == ago(0)
    assert with_condition((same_status,), ready._replace(message="other"), NOW) == (same_status,)


# --- revisions ---


def test_a_revision_brings_the_template_back() -> None:
    workload = a_workload(kind="DaemonSet")
    revision = make_revision(REPLICA_SETS, workload, 4)

    assert template_in(revision) == workload.get("spec", "template")
    assert revision.get("data", "spec", "template", "$patch") == "replace"
    assert revision.get("revision") == 4


def test_the_oldest_unused_revisions_are_forgotten() -> None:
    revisions = [a_workload(f"r{number}").with_value(number, "revision") for number in (3, 1, 2, 4)]

    forgotten = revisions_to_forget(revisions, {"r1", "r4"}, 1)
    assert [found.get("metadata", "name") for found in forgotten] == ["r2"]
