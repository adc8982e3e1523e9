"""Counting claims."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from allot.api.base import replace
from allot.api.claims import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from allot.api.identities import ObjectKey
from allot.api.resource import EXTENDED_RESOURCE_CLAIM
from allot.controllers.resource_claims.metrics import ClaimFacts, ClaimMetrics, Uses, claim_facts
from tests.unit.controllers.resource_claims.claims import a_used_claim

KEY = ObjectKey("ns", "c")


def with_requests(*requests: DeviceRequest) -> ResourceClaimSpec:
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests))


def test_facts() -> None:
    admin = DeviceRequest(exactly=ExactDeviceRequest(admin_access=True))
    listed = DeviceRequest(first_available=(DeviceSubRequest(),))
    claim = a_used_claim(annotations={EXTENDED_RESOURCE_CLAIM: "true"})

    facts = claim_facts(replace(claim, spec=with_requests(admin, listed)))

    assert facts == ClaimFacts(True, Uses(True, True), "extended_resource")
    assert claim_facts(a_used_claim(allocated=False)) == ClaimFacts(False, Uses(False, False), "")


def test_gauges_follow_one_claim_through_its_life() -> None:
    registry = CollectorRegistry()
    metrics = ClaimMetrics(registry)
    labels = {"admin_access": "false", "prioritized_list": "false"}

    def shown() -> list[float | None]:
        return [
            registry.get_sample_value(f"resourceclaim_controller_{name}", labels)
            for name in ("resource_claims", "allocated_resource_claims")
        ]

    assert shown() == [0, 0]
    metrics.claim_seen(KEY, a_used_claim(allocated=False))
    metrics.claim_seen(KEY, a_used_claim(allocated=False))
    assert shown() == [1, 0]
    metrics.claim_seen(KEY, a_used_claim())
    assert shown() == [1, 1]
    metrics.claim_seen(KEY, None)
    assert shown() == [0, 0]
