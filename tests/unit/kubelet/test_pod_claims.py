"""When a pod's claims let it start."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.claims import (
    ResourceClaim,
)
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.kubelet.pod_claims import ClaimUse, claims_of, what_is_missing
from allot.testing.builders import a_claim, a_consumer, a_pod, an_allocation

MINE = OwnerReference("v1", "Pod", "p", "u1", controller=True)


def a_claim_of(
    *, owner: OwnerReference | None = None, allocated: bool = True, reserved: str = "u1"
) -> ResourceClaim:
    return a_claim(
        allocation=an_allocation() if allocated else None,
        reserved_for=[a_consumer("p", reserved)] if reserved else [],
        owner_references=(owner,) if owner else (),
    )


def a_pod_with(entry: dict[str, str], **status: Any) -> Pod:
    claims = [{"name": "r", **entry}] if entry else []
    return a_pod("p", uid="u1", claims=claims, status=status)


NAMED = a_pod_with({"resourceClaimName": "claim"})
TEMPLATE = {"resourceClaimTemplateName": "t"}
MADE = a_pod_with(TEMPLATE, resourceClaimStatuses=[{"name": "r", "resourceClaimName": "claim"}])
EXTENDED = a_pod_with({}, extendedResourceClaimStatus={"resourceClaimName": "claim"})


@pytest.mark.parametrize(
    ("pod", "claim", "missing"),
    [
        pytest.param(a_pod_with({}), None, "", id="no-claims"),
        pytest.param(NAMED, a_claim_of(), "", id="named"),
        pytest.param(NAMED, None, "not found", id="gone"),
        pytest.param(NAMED, a_claim_of(allocated=False), "is not allowed to use", id="unallocated"),
        pytest.param(
            NAMED, a_claim_of(reserved="u2"), "is not allowed to use", id="of-another-pod"
        ),
        pytest.param(NAMED, a_claim_of(reserved=""), "is not allowed to use", id="unreserved"),
        pytest.param(a_pod_with(TEMPLATE), None, "not created yet", id="not-made-yet"),
        pytest.param(MADE, a_claim_of(owner=MINE), "", id="made"),
        pytest.param(MADE, a_claim_of(), "was not created for pod", id="made-for-no-pod"),
        pytest.param(
            a_pod_with(TEMPLATE, resourceClaimStatuses=[{"name": "r"}]), None, "", id="none-needed"
        ),
        pytest.param(EXTENDED, a_claim_of(owner=MINE), "", id="extended"),
        pytest.param(EXTENDED, None, "not found", id="extended-gone"),
    ],
)
def test_what_is_missing(pod: Pod, claim: ResourceClaim | None, missing: str) -> None:
    found = what_is_missing(pod, {ObjectKey("default", "claim"): claim}.get)

    assert missing in found
    assert bool(missing) == bool(found)


@pytest.mark.parametrize("pod", [a_pod_with({}), NAMED, a_pod_with(TEMPLATE), MADE, EXTENDED])
def test_the_claims_of_a_pod_are_those_it_waits_for(pod: Pod) -> None:
    uses = [str(use.key) for use in claims_of(pod) if isinstance(use, ClaimUse)]

    assert uses == pod.used_claim_keys
