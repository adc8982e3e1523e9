"""What happens to claims when pods are done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.base import replace
from allot.api.claims import DeviceClaimConfiguration, ResourceClaim
from allot.api.core import Pod
from allot.api.resource import DELETE_PROTECTION, OpaqueDeviceConfiguration
from allot.controllers.resource_claims.decisions import (
    ConsumerState,
    Deallocate,
    DeleteClaim,
    ReleaseConsumers,
    RemoveFinalizer,
    Step,
    has_opaque_parameters,
    lacks_reservation,
    patch_for,
    plan,
    reservation_patch,
    reserved_for,
    state_in_copy,
    state_on_server,
    written_by,
)
from tests.unit.controllers.resource_claims.claims import a_consuming_pod, a_used_claim, consumer

NEEDED, DONE, GONE, REPLACED, UNKNOWN = ConsumerState
A, B = consumer("a"), consumer("b")
JOB = consumer("job", api_group="batch", resource="jobs")
GROUP = consumer("a", api_group="scheduling.k8s.io", resource="podgroups")


@pytest.mark.parametrize(
    ("claim", "done", "owner", "steps"),
    [
        pytest.param(a_used_claim(A), "", NEEDED, (), id="in-use"),
        pytest.param(
            a_used_claim(A, B),
            "a",
            NEEDED,
            (ReleaseConsumers(("a",), False),),
            id="one-of-two-done",
        ),
        pytest.param(
            a_used_claim(A, B),
            "ab",
            NEEDED,
            (ReleaseConsumers(("a", "b"), True), RemoveFinalizer()),
            id="the-last-takes-the-allocation-along",
        ),
        pytest.param(
            a_used_claim(A, protected=False),
            "a",
            NEEDED,
            (ReleaseConsumers(("a",), False),),
            id="an-allocation-without-our-finalizer-is-not-ours",
        ),
        pytest.param(
            a_used_claim(A, owner="a"),
            "a",
            DONE,
            (ReleaseConsumers(("a",), True), RemoveFinalizer(), DeleteClaim()),
            id="claim-of-a-finished-pod",
        ),
        pytest.param(
            a_used_claim(A, owner="a"),
            "a",
            GONE,
            (ReleaseConsumers(("a",), True), RemoveFinalizer()),
            id="claim-of-a-pod-that-is-gone-is-garbage",
        ),
        pytest.param(
            a_used_claim(A, B, owner="a"),
            "a",
            DONE,
            (ReleaseConsumers(("a",), False),),
            id="another-pod-uses-the-claim-of-a-finished-one",
        ),
        pytest.param(a_used_claim(), "", NEEDED, (), id="allocated-ahead-of-its-first-consumer"),
        pytest.param(
            a_used_claim(allocated=False),
            "",
            NEEDED,
            (),
            id="about-to-be-allocated-by-the-scheduler",
        ),
        pytest.param(
            a_used_claim(owner="a"), "", REPLACED, (DeleteClaim(),), id="unused-of-a-replaced-pod"
        ),
        pytest.param(
            a_used_claim(deleting=True),
            "",
            NEEDED,
            (Deallocate(), RemoveFinalizer()),
            id="deleted-unused",
        ),
        pytest.param(
            a_used_claim(deleting=True, allocated=False),
            "",
            DONE,
            (RemoveFinalizer(),),
            id="deleted-free",
        ),
        pytest.param(a_used_claim(A, deleting=True), "", NEEDED, (), id="deleted-in-use"),
        pytest.param(
            a_used_claim(A, deleting=True),
            "a",
            DONE,
            (ReleaseConsumers(("a",), True), RemoveFinalizer()),
            id="deleted-and-done",
        ),
        pytest.param(
            a_used_claim(deleting=True, protected=False),
            "",
            DONE,
            (),
            id="deleted-and-others-hold-it",
        ),
        pytest.param(a_used_claim(JOB), ("job",), NEEDED, (), id="not-a-pod"),
        pytest.param(a_used_claim(GROUP), "a", NEEDED, (), id="a-pod-group"),
        pytest.param(
            a_used_claim(A, JOB),
            "a",
            DONE,
            (ReleaseConsumers(("a",), False),),
            id="a-pod-beside-another-kind",
        ),
    ],
)
def test_plan(
    claim: ResourceClaim, done: str | tuple[str, ...], owner: ConsumerState, steps: tuple[Step, ...]
) -> None:
    assert plan(claim, frozenset(done), owner) == steps


claims = st.builds(
    lambda uids, owner, allocated, protected, deleting: a_used_claim(
        *(consumer(uid) for uid in uids),
        owner=owner,
        allocated=allocated or bool(uids),
        protected=protected,
        deleting=deleting,
    ),
    st.lists(st.sampled_from("abcd"), unique=True),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(claims, st.frozensets(st.sampled_from("abcd")), st.sampled_from(list(ConsumerState)))
def test_what_is_in_use_stays_and_what_is_not_goes(
    claim: ResourceClaim, done: frozenset[str], owner: ConsumerState
) -> None:
    steps = plan(claim, done, owner)
    reserved = {one.uid for one in claim.status.reserved_for}
    in_use = reserved - done
    released = [step for step in steps if isinstance(step, ReleaseConsumers)]

    if in_use:
        assert all(isinstance(step, ReleaseConsumers) and not step.deallocate for step in steps)
    assert {uid for step in released for uid in step.uids} == reserved & done
    if reserved and not in_use and DELETE_PROTECTION in claim.metadata.finalizers:
        assert RemoveFinalizer() in steps
        assert released[0].deallocate
    if claim.metadata.deletion_timestamp is not None:
        assert DeleteClaim() not in steps
        assert bool(in_use) or (RemoveFinalizer() in steps) == bool(claim.metadata.finalizers)


@pytest.mark.parametrize(
    ("copy", "was_deleted", "state"),
    [
        pytest.param(a_consuming_pod(uid="a"), False, NEEDED, id="there"),
        pytest.param(
            a_consuming_pod(uid="a", status={"phase": "Failed"}), False, DONE, id="finished"
        ),
        pytest.param(
            a_consuming_pod(uid="a", deleting=True), False, DONE, id="deleted-without-a-node"
        ),
        pytest.param(
            a_consuming_pod(uid="a", deleting=True, node="n"), False, NEEDED, id="stopping"
        ),
        pytest.param(None, False, UNKNOWN, id="not-in-the-copy-which-may-be-behind"),
        pytest.param(
            a_consuming_pod(uid="b"), False, UNKNOWN, id="the-copy-may-show-the-predecessor"
        ),
        pytest.param(None, True, GONE, id="seen-going"),
        pytest.param(a_consuming_pod(uid="a"), True, GONE, id="the-copy-does-not-know-yet"),
        pytest.param(a_consuming_pod(uid="b"), True, REPLACED, id="seen-going-and-another-coming"),
    ],
)
def test_what_a_copy_says_of_a_pod(
    copy: Pod | None, was_deleted: bool, state: ConsumerState
) -> None:
    assert state_in_copy("a", copy, was_deleted) is state


@pytest.mark.parametrize(
    ("found", "state"),
    [
        pytest.param(None, GONE, id="none"),
        pytest.param(a_consuming_pod(uid="b"), REPLACED, id="another"),
        pytest.param(a_consuming_pod(uid="a"), NEEDED, id="there"),
        pytest.param(a_consuming_pod(uid="a", status={"phase": "Succeeded"}), DONE, id="finished"),
    ],
)
def test_what_the_server_says_of_a_pod(found: Pod | None, state: ConsumerState) -> None:
    assert state_on_server("a", found) is state


@pytest.mark.parametrize(
    ("step", "change"),
    [
        pytest.param(
            ReleaseConsumers(("a",), True),
            {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}], "allocation": None}},
            id="release-and-deallocate",
        ),
        pytest.param(
            ReleaseConsumers(("a",), False),
            {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]}},
            id="release",
        ),
        pytest.param(Deallocate(), {"status": {"allocation": None}}, id="deallocate"),
    ],
)
def test_steps_are_for_one_version_of_the_claim(
    step: ReleaseConsumers | Deallocate, change: dict[str, object]
) -> None:
    version = {"metadata": {"uid": "uid-c", "resourceVersion": "7"}}
    assert patch_for(step, a_used_claim(A)) == version | change


def test_only_our_finalizer_is_removed() -> None:
    metadata = patch_for(RemoveFinalizer(), a_used_claim())["metadata"]

    assert metadata["resourceVersion"] == "7"
    assert metadata["$deleteFromPrimitiveList/finalizers"] == [DELETE_PROTECTION]


@pytest.mark.parametrize(
    ("claim", "lacks"),
    [
        pytest.param(a_used_claim(), True, id="allocated"),
        pytest.param(a_used_claim(B), True, id="reserved-for-another"),
        pytest.param(a_used_claim(A), False, id="reserved"),
        pytest.param(a_used_claim(allocated=False), False, id="not-allocated"),
        pytest.param(a_used_claim(deleting=True), False, id="deleted"),
    ],
)
def test_pods_bound_by_hand(claim: ResourceClaim, lacks: bool) -> None:
    assert lacks_reservation(claim, "a") is lacks


def test_a_reservation_looks_like_the_schedulers() -> None:
    assert reservation_patch(a_used_claim(), a_consuming_pod("p", "a")) == {
        "metadata": {"uid": "uid-c", "resourceVersion": "7"},
        "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "a"}]},
    }


# --- updates instead of patches ---


def test_steps_as_updates() -> None:
    claim = a_used_claim(A, B)

    released = written_by(ReleaseConsumers(("a",), deallocate=False), claim)
    assert released.status == replace(claim.status, reserved_for=(B,))
    ended = written_by(ReleaseConsumers(("a", "b"), deallocate=True), claim)
    assert (ended.status.reserved_for, ended.status.allocation) == ((), None)
    assert written_by(Deallocate(), claim).status == replace(claim.status, allocation=None)
    unprotected = written_by(RemoveFinalizer(), claim)
    assert unprotected == replace(claim, metadata=replace(claim.metadata, finalizers=()))


def test_a_reservation_as_an_update() -> None:
    pod = a_consuming_pod("p", "uid-p")
    claim = reserved_for(a_used_claim(A), pod)
    assert claim.status.reserved_for == (A, consumer("uid-p", name="p"))


def test_claims_with_opaque_parameters_are_updated() -> None:
    claim = a_used_claim(A)
    assert not has_opaque_parameters(claim)
    config = DeviceClaimConfiguration(opaque=OpaqueDeviceConfiguration(driver="d"))
    devices = replace(claim.spec.devices, config=(config,))
    assert has_opaque_parameters(replace(claim, spec=replace(claim.spec, devices=devices)))
