from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.scheduler.framework.events import Hint
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claim_hint,
    claims_of,
    is_reserved_for,
    pod_hint,
)
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import an_allocation
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.state.objects import a_pod_info

BY_NAME = {"name": "gpu", "resourceClaimName": "claim"}
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "template"}
GPU_0 = an_allocation("gpu-0")


def with_entries(*entries: dict[str, Any], statuses: Sequence[dict[str, Any]] = ()) -> PodInfo:
    return a_pod_info(
        resourceClaims=list(entries),
        status={"resourceClaimStatuses": list(statuses)} if statuses else {},
    )


def found(pod: PodInfo, *claims: ResourceClaim) -> list[str] | str:
    """The names of the pod's claims, or why it cannot have them."""
    answer = claims_of(pod, finder(*claims))
    if isinstance(answer, Unusable):
        return answer.reason
    return [claim.metadata.name for claim in answer]


def finder(*claims: ResourceClaim) -> Any:
    known = {ObjectKey("default", claim.metadata.name): claim for claim in claims}
    return known.get


POD = with_entries(BY_NAME)
MADE = {"name": "gpu", "resourceClaimName": "made"}


@pytest.mark.parametrize(
    ("pod", "claims", "expected"),
    [
        pytest.param(a_pod_info(), [], [], id="none"),
        pytest.param(POD, [a_stored_claim()], ["claim"], id="by-name"),
        pytest.param(
            POD,
            [a_stored_claim(owner=a_pod_info("other-pod"))],
            ["claim"],
            id="by-name-with-any-owner",
        ),
        pytest.param(POD, [], 'could not find ResourceClaim "default/claim"', id="missing"),
        pytest.param(
            POD,
            [a_stored_claim(deleting=True)],
            'resourceclaim "claim" is being deleted',
            id="being-deleted",
        ),
        pytest.param(
            with_entries({"name": "gpu"}),
            [],
            'pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set',
            id="neither-name-nor-template",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE),
            [a_stored_claim("made", owner=a_pod_info())],
            'pod "default/pod": ResourceClaim not created yet',
            id="template-without-status",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[{"name": "other", "resourceClaimName": "made"}]),
            [a_stored_claim("made", owner=a_pod_info())],
            'pod "default/pod": ResourceClaim not created yet',
            id="template-with-a-status-of-another-entry",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[{"name": "gpu"}]),
            [],
            [],
            id="template-that-needs-no-claim",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[MADE]),
            [a_stored_claim("made", owner=a_pod_info())],
            ["made"],
            id="template",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[MADE]),
            [],
            'could not find ResourceClaim "default/made"',
            id="template-missing",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[MADE]),
            [a_stored_claim("made", owner=a_pod_info("other"))],
            "ResourceClaim default/made was not created for Pod default/pod (Pod is not owner)",
            id="template-of-another-pod",
        ),
        pytest.param(
            with_entries(BY_TEMPLATE, statuses=[MADE]),
            [a_stored_claim("made")],
            "ResourceClaim default/made was not created for Pod default/pod (Pod is not owner)",
            id="template-without-owner",
        ),
        pytest.param(
            a_pod_with_claims("b", "a"),
            [a_stored_claim("a"), a_stored_claim("b")],
            ["b", "a"],
            id="several-in-the-order-of-the-pod",
        ),
        pytest.param(
            with_entries(BY_NAME, {"name": "again", "resourceClaimName": "claim"}),
            [a_stored_claim()],
            ["claim"],
            id="named-twice-is-one-claim",
        ),
        pytest.param(
            a_pod_with_claims("a", "b"),
            [a_stored_claim("a")],
            'could not find ResourceClaim "default/b"',
            id="one-of-several-missing",
        ),
    ],
)
def test_claims_of_a_pod(
    pod: PodInfo, claims: list[ResourceClaim], expected: list[str] | str
) -> None:
    assert found(pod, *claims) == expected


FREE = a_stored_claim("other")
TAKEN = a_stored_claim("other", allocation=GPU_0)
OURS = a_stored_claim()
OURS_TAKEN = a_stored_claim(allocation=GPU_0)


@pytest.mark.parametrize(
    ("old", "new", "known", "hint"),
    [
        pytest.param(None, None, [OURS], Hint.QUEUE, id="1-deleted-in-an-unknown-state"),
        pytest.param(FREE, None, [OURS], Hint.SKIP, id="2-deleted-without-allocation"),
        pytest.param(TAKEN, None, [OURS], Hint.QUEUE, id="2-deleted-with-allocation"),
        pytest.param(TAKEN, None, [], Hint.QUEUE, id="2-deleted-comes-before-the-pod's-own-claims"),
        pytest.param(TAKEN, FREE, [], Hint.SKIP, id="3-the-pod's-own-claims-are-not-there"),
        pytest.param(TAKEN, FREE, [OURS], Hint.QUEUE, id="4-any-claim-deallocated"),
        pytest.param(None, FREE, [OURS], Hint.SKIP, id="5-another-claim-created"),
        pytest.param(FREE, TAKEN, [OURS], Hint.SKIP, id="5-another-claim-allocated"),
        pytest.param(None, OURS, [OURS], Hint.QUEUE, id="6-created"),
        pytest.param(
            OURS,
            a_stored_claim(version=2, labels={"a": "b"}, finalizers=("x",)),
            [OURS],
            Hint.SKIP,
            id="7-same-status",
        ),
        pytest.param(OURS, OURS_TAKEN, [OURS_TAKEN], Hint.QUEUE, id="8-allocated"),
        pytest.param(
            OURS_TAKEN,
            a_stored_claim(allocation=GPU_0, reserved_for=[a_pod_info("other")]),
            [OURS_TAKEN],
            Hint.QUEUE,
            id="8-reserved",
        ),
    ],
)
def test_which_changes_of_claims_wake_a_pod(
    old: ResourceClaim | None, new: ResourceClaim | None, known: list[ResourceClaim], hint: Hint
) -> None:
    assert claim_hint(POD, old, new, finder(*known)) is hint


def test_a_claim_of_the_same_name_in_another_namespace_is_another() -> None:
    elsewhere = a_pod_info(namespace="elsewhere", resourceClaims=[BY_NAME])
    known = {ObjectKey("elsewhere", "claim"): OURS}

    assert claim_hint(elsewhere, OURS, OURS_TAKEN, known.get) is Hint.SKIP


def test_a_claim_made_from_a_template_counts_as_the_pods_own() -> None:
    pod = with_entries(BY_TEMPLATE, statuses=[MADE])
    made = a_stored_claim("made", owner=pod)

    assert claim_hint(pod, None, made, finder(made)) is Hint.QUEUE


@pytest.mark.parametrize(
    ("pod", "hint"),
    [
        (with_entries(BY_TEMPLATE), Hint.SKIP),
        (with_entries(BY_TEMPLATE, statuses=[MADE]), Hint.QUEUE),
        (with_entries(BY_TEMPLATE, BY_NAME, statuses=[MADE]), Hint.SKIP),
    ],
)
def test_a_status_of_the_pod_wakes_it_once_all_claims_are_there(pod: PodInfo, hint: Hint) -> None:
    assert pod_hint(pod, finder(a_stored_claim("made", owner=pod))) is hint


def test_reservations_are_compared_by_uid() -> None:
    pod, successor = a_pod_info(), a_pod_info(metadata={"uid": "another"})
    claim = a_stored_claim(allocation=GPU_0, reserved_for=[pod])

    assert is_reserved_for(claim, pod)
    assert not is_reserved_for(claim, successor)
