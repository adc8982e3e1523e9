"""When pods have to leave tainted devices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.claims import (
    ResourceClaim,
)
from allot.api.core import Pod
from allot.api.identities import DeviceId
from allot.api.resource import DeviceTaint, DeviceToleration
from allot.api.slices import ResourcePool
from allot.controllers.device_taint_eviction.evictions import (
    EvictingTaint,
    Eviction,
    RuleRef,
    claim_eviction,
    claim_names,
    eviction_time,
    own_evicting_taints,
    pod_eviction,
)
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_consumer,
    a_device,
    a_pod,
    a_slice,
    an_allocation,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TAINT = DeviceTaint("bad", "yes", "NoExecute", T0)
RULE = RuleRef("rule", "rule-uid")


def tolerating(seconds: int | None = None, **fields: str) -> DeviceToleration:
    given = {"key": "bad", "operator": "Exists", "effect": "NoExecute"} | fields
    return DeviceToleration(**given, toleration_seconds=seconds)


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "at"),
    [
        pytest.param([], T0, id="none: as soon as the taint is there"),
        pytest.param([tolerating()], None, id="forever"),
        pytest.param([tolerating(60)], after(60), id="for a while"),
        pytest.param([tolerating(60), tolerating(30)], after(30), id="the shortest of several"),
        pytest.param([tolerating(60), tolerating()], None, id="forever beats a while"),
        pytest.param([tolerating(-5)], T0, id="negative is none"),
        pytest.param([tolerating(effect="")], T0, id="any effect is not NoExecute"),
        pytest.param([tolerating(effect="NoSchedule")], T0, id="another effect"),
        pytest.param([tolerating(key="other")], T0, id="another key"),
        pytest.param([tolerating(key="")], None, id="any key"),
        pytest.param([tolerating(operator="Equal", value="yes")], None, id="equal"),
        pytest.param([tolerating(operator="Equal", value="no")], T0, id="not equal"),
        pytest.param(
            [tolerating(2**62)], datetime.max.replace(tzinfo=UTC), id="longer than the calendar"
        ),
    ],
)
def test_tolerations_of_a_taint(tolerations: list[DeviceToleration], at: datetime | None) -> None:
    assert eviction_time(TAINT, tolerations) == at


def test_only_the_newest_generation_speaks_for_a_device() -> None:
    tainted = a_device("d0", taints=(TAINT, DeviceTaint("x", effect="NoSchedule")))
    old = a_slice(tainted, name="old", pool=ResourcePool("p", 1, 1))
    other = a_device("d1", taints=(TAINT,))
    new = a_slice(a_device("d0"), other, name="new", pool=ResourcePool("p", 2, 1))
    assert own_evicting_taints(DeviceId(DRIVER, "p", "d0"), [old], 1) == (TAINT,)
    assert own_evicting_taints(DeviceId(DRIVER, "p", "d0"), [old, new], 2) == ()
    assert own_evicting_taints(DeviceId(DRIVER, "p", "d1"), [old, new], 2) == (TAINT,)


def a_claim_on(
    *devices: str, uid: str = "pod-uid", tolerations: tuple[Any, ...] = ()
) -> ResourceClaim:
    allocation = an_allocation(*devices, pool="p", tolerations=tolerations)
    return a_claim(allocation=allocation, reserved_for=[a_consumer("pod", uid)])


def taints_of(device: DeviceId) -> list[EvictingTaint]:
    later = DeviceTaint("bad", "yes", "NoExecute", after(10))
    found = {
        "own": [EvictingTaint(TAINT)],
        "ruled": [EvictingTaint(later, RULE)],
        "both": [EvictingTaint(TAINT), EvictingTaint(later, RULE)],
    }
    return found.get(device.device, [])


@pytest.mark.parametrize(
    ("claim", "eviction"),
    [
        pytest.param(ResourceClaim(), None, id="not allocated"),
        pytest.param(a_claim_on("fine"), None, id="not tainted"),
        pytest.param(a_claim_on("own"), Eviction(T0), id="by its driver"),
        pytest.param(a_claim_on("ruled"), Eviction(after(10), frozenset({RULE})), id="by a rule"),
        pytest.param(
            a_claim_on("fine", "ruled", "own"),
            Eviction(T0, frozenset({RULE})),
            id="the earliest time, all rules",
        ),
        pytest.param(a_claim_on("both", tolerations=(tolerating(),)), None, id="tolerated"),
        pytest.param(
            a_claim_on("ruled", tolerations=(tolerating(60),)),
            Eviction(after(70), frozenset({RULE})),
            id="for a while from when the taint was added",
        ),
    ],
)
def test_claims(claim: ResourceClaim, eviction: Eviction | None) -> None:
    assert claim_eviction(claim, taints_of) == eviction


def a_pod_with_claims(phase: str = "Running", node: str = "n", deleting: bool = False) -> Pod:
    return a_pod(
        uid="pod-uid",
        node=node,
        phase=phase,
        deleting=deleting,
        claims=[
            {"name": "a", "resourceClaimName": "named"},
            {"name": "b", "resourceClaimTemplateName": "template"},
            {"name": "c", "resourceClaimTemplateName": "not yet"},
        ],
        status={
            "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
        },
    )


def test_the_claims_of_a_pod() -> None:
    assert sorted(claim_names(a_pod_with_claims())) == ["extended", "made", "named"]


@pytest.mark.parametrize(
    ("pod", "claims", "eviction"),
    [
        pytest.param(a_pod_with_claims(), [], None, id="no claim"),
        pytest.param(
            a_pod_with_claims(),
            [a_claim_on("ruled"), a_claim_on("own")],
            Eviction(T0, frozenset({RULE})),
            id="the earliest of its claims",
        ),
        pytest.param(a_pod_with_claims(node=""), [a_claim_on("own")], None, id="not bound"),
        pytest.param(a_pod_with_claims("Succeeded"), [a_claim_on("own")], None, id="finished"),
        pytest.param(a_pod_with_claims(deleting=True), [a_claim_on("own")], None, id="on its way"),
        pytest.param(
            a_pod_with_claims(), [a_claim_on("own", uid="other")], None, id="reserved for another"
        ),
    ],
)
def test_pods(pod: Pod, claims: list[ResourceClaim], eviction: Eviction | None) -> None:
    assert pod_eviction(pod, claims, taints_of) == eviction
