"""Counting claims."""

from __future__ import annotations

import time

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

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


def test_attempts_show_the_page_of_usual_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.5)
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    metrics = ClaimMetrics(ours)
    creates = Counter(
        "dynamic_resource_allocation_resourceclaim_creates",
        "Claims that were made, or could not be.",
        ("status", "admin_access", "owner_api_group", "owner_api_kind"),
        registry=theirs,
    )
    labels = ("admin_access", "prioritized_list")
    name = "resourceclaim_controller_create"
    created = Counter(name, "Requests to create a claim.", labels, registry=theirs)
    failed = Counter(
        f"{name}_failures", "Requests to create a claim that failed.", labels, registry=theirs
    )
    for counter in (created, failed):
        counter.labels("false", "false")
    plain, listed, admin = Uses(False, False), Uses(False, True), Uses(True, False)
    for uses, worked in ((plain, True), (listed, True), (admin, False), (plain, True)):
        metrics.attempts.add(uses, worked=worked)
        status = "success" if worked else "failure"
        creates.labels(status, uses.labels[0], "", "Pod").inc()
        created.labels(*uses.labels).inc()
        if not worked:
            failed.labels(*uses.labels).inc()

    assert generate_latest(ours).decode().startswith(generate_latest(theirs).decode())
