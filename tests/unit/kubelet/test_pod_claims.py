"""When a pod's claims let it start."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.claims import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.kubelet.pod_claims import what_is_missing

MINE = OwnerReference("v1", "Pod", "p", "u1", controller=True)


def a_claim(
    *, owner: OwnerReference | None = None, allocated: bool = True, reserved: str = "u1"
) -> ResourceClaim:
    consumers = (ResourceClaimConsumerReference(resource="pods", name="p", uid=reserved),)
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace="default", name="claim", owner_references=(owner,) if owner else ()
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if allocated else None,
            reserved_for=consumers if reserved else (),
        ),
    )


def a_pod(entry: dict[str, str], **status: Any) -> Pod:
    return Pod(
        {
            "metadata": {"namespace": "default", "name": "p", "uid": "u1"},
            "spec": {"resourceClaims": [{"name": "r", **entry}] if entry else []},
            "status": status,
        }
    )


NAMED = a_pod({"resourceClaimName": "claim"})
TEMPLATE = {"resourceClaimTemplateName": "t"}
MADE = a_pod(TEMPLATE, resourceClaimStatuses=[{"name": "r", "resourceClaimName": "claim"}])
EXTENDED = a_pod({}, extendedResourceClaimStatus={"resourceClaimName": "claim"})


@pytest.mark.parametrize(
    ("pod", "claim", "missing"),
    [
        pytest.param(a_pod({}), None, "", id="no-claims"),
        pytest.param(NAMED, a_claim(), "", id="named"),
        pytest.param(NAMED, None, "does not exist", id="gone"),
        pytest.param(NAMED, a_claim(allocated=False), "is not allocated", id="unallocated"),
        pytest.param(NAMED, a_claim(reserved="u2"), "is not reserved", id="of-another-pod"),
        pytest.param(NAMED, a_claim(reserved=""), "is not reserved", id="unreserved"),
        pytest.param(a_pod(TEMPLATE), None, "has not been created", id="not-made-yet"),
        pytest.param(MADE, a_claim(owner=MINE), "", id="made"),
        pytest.param(MADE, a_claim(), "was not created for this pod", id="made-for-nobody"),
        pytest.param(
            a_pod(TEMPLATE, resourceClaimStatuses=[{"name": "r"}]), None, "", id="none-needed"
        ),
        pytest.param(EXTENDED, a_claim(owner=MINE), "", id="extended"),
        pytest.param(EXTENDED, None, "does not exist", id="extended-gone"),
    ],
)
def test_what_is_missing(pod: Pod, claim: ResourceClaim | None, missing: str) -> None:
    found = what_is_missing(pod, {ObjectKey("default", "claim"): claim}.get)

    assert missing in found
    assert bool(missing) == bool(found)
