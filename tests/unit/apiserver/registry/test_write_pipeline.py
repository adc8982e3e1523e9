"""Writes: what the server refuses before it looks, what it keeps, and what both versions see."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from allot import features
from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.api.meta import ObjectMeta
from allot.api.pool_status import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.apiserver.kinds.request import Caller, WriteRequest
from allot.apiserver.kinds.resources import RESOURCES
from allot.apiserver.registry.write_pipeline import (
    Accepted,
    Refused,
    Rejected,
    keeps_stored,
    metadata_for_create,
    metadata_for_update,
    pipeline_for,
)
from allot.testing.builders import a_claim, a_slice
from allot.validation.expressions import AcceptEverything

PIPELINES = {
    resource.kind: pipeline_for(resource) for resource in RESOURCES if resource.info.is_typed
}
CLAIMS, SLICES = PIPELINES["ResourceClaim"], PIPELINES["ResourceSlice"]


def a_write(version: str = "v1", **changes: Any) -> WriteRequest:
    request = WriteRequest(
        gates=features.DEFAULTS,
        version=version,
        expressions=AcceptEverything(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
        new_name_suffix=lambda: "bcdfg",
        caller=Caller("me", {}, lambda _: True),
    )
    return replace(request, **changes)


def stored(claim: ResourceClaim) -> ResourceClaim:
    return replace(
        claim, metadata=replace(claim.metadata, resource_version="5", uid="u", generation=2)
    )


def test_created_objects_have_no_version_yet() -> None:
    claim = stored(a_claim())

    assert isinstance(CLAIMS.create(claim, a_write()), Refused)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"name": ""},
        {"namespace": ""},
        {"uid": "u"},
        {"resource_version": "0"},
        {"creation_timestamp": datetime(2025, 1, 1, tzinfo=UTC)},
        {"deletion_timestamp": datetime(2025, 1, 1, tzinfo=UTC)},
        {"deletion_grace_period_seconds": 0},
        {"self_link": "l"},
    ],
)
@pytest.mark.parametrize("namespaced", [True, False])
def test_new_metadata_has_nothing_that_only_the_server_sets(
    sent: dict[str, Any], namespaced: bool
) -> None:
    usual: dict[str, Any] = {
        "name": "a",
        "namespace": "n" if namespaced else "",
        "labels": {"l": "1"},
    }
    metadata = ObjectMeta(**{"generate_name": "g-", **usual, **sent})
    request = a_write(namespace="n")

    made = metadata_for_create(metadata, request, namespaced=namespaced)

    assert made == ObjectMeta(
        **{**usual, "name": "g-bcdfg" if "name" in sent else "a"}, generate_name="g-"
    )
    is_as_sent = made == metadata
    assert (made is metadata) == is_as_sent
    other_place = replace(metadata, namespace="" if namespaced else "n")
    assert metadata_for_create(other_place, request, namespaced=namespaced) == made


def test_stale_updates_are_refused() -> None:
    old = stored(a_claim())
    stale = replace(old, metadata=replace(old.metadata, resource_version="4"))

    outcome = CLAIMS.update(stale, old, a_write())

    assert isinstance(outcome, Refused)
    assert outcome.code == 409


def test_an_update_without_version_is_not_for_any_version() -> None:
    old = ResourcePoolStatusRequest(ObjectMeta(name="p", uid="u"))

    assert isinstance(PIPELINES["ResourcePoolStatusRequest"].update(old, old, a_write()), Rejected)


def test_metadata_that_was_read_and_written_back_keeps_what_is_stored() -> None:
    times = (None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    each = [
        ObjectMeta(
            resource_version=version,
            uid=uid,
            generation=generation,
            creation_timestamp=created,
            deletion_timestamp=deleted,
            deletion_grace_period_seconds=grace,
        )
        for version, uid, generation, created, deleted, grace in product(
            ("", "5"), ("", "u"), (0, 1), times[:2], times, (None, 0, 30)
        )
    ]

    for new, old in product(each, each):
        if old.resource_version:
            assert keeps_stored(new, old) == (metadata_for_update(new, old) == new)


def test_an_allocation_stays_through_spec_updates() -> None:
    allocation = AllocationResult(
        DeviceAllocationResult((DeviceRequestAllocationResult("gpu", "d.e", "p", "x"),))
    )
    old = replace(stored(a_claim()), status=ResourceClaimStatus(allocation=allocation))
    new = replace(
        old, status=ResourceClaimStatus(), metadata=replace(old.metadata, labels={"a": "b"})
    )

    outcome = CLAIMS.update(new, old, a_write())

    assert isinstance(outcome, Accepted)
    assert outcome.object.status.allocation == allocation
    assert outcome.object.metadata.labels == {"a": "b"}


def test_upper_case_drivers_are_worth_a_warning() -> None:
    outcome = SLICES.create(a_slice(driver="GPU.example.com"), a_write())

    assert isinstance(outcome, Accepted)
    assert outcome.warnings == [
        'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters'
    ]


def a_question(driver: str, **spec: Any) -> ResourcePoolStatusRequest:
    return ResourcePoolStatusRequest(
        ObjectMeta(name="q", resource_version="1"),
        ResourcePoolStatusRequestSpec(driver, limit=100, **spec),
    )


def test_the_kep_writes_drivers_with_a_slash() -> None:
    pipeline = PIPELINES["ResourcePoolStatusRequest"]
    question = replace(a_question("example.com/gpu"), metadata=ObjectMeta(name="q"))

    assert isinstance(pipeline.create(question, a_write("v1alpha1")), Accepted)
    assert isinstance(pipeline.create(question, a_write("v1alpha3")), Rejected)


def test_errors_show_the_driver_as_it_was_written() -> None:
    question = replace(a_question("exa mple.com/gpu"), metadata=ObjectMeta(name="q"))

    outcome = PIPELINES["ResourcePoolStatusRequest"].create(question, a_write("v1alpha1"))

    assert isinstance(outcome, Rejected)
    assert [error.value for error in outcome.errors] == ["exa mple.com/gpu"]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("v1alpha1", {"totalMatchingPools", "pools[0].sliceCount"}),
        ("v1alpha3", {"poolCount", "pools[0].resourceSliceCount"}),
    ],
)
def test_errors_of_a_status_name_the_fields_of_its_version(version: str, names: set[str]) -> None:
    pool = PoolStatus("d.e", "p", generation=1, resource_slice_count=0)
    old = a_question("d.e")
    new = replace(old, status=ResourcePoolStatusRequestStatus(-1, (pool,)))

    pipeline = PIPELINES["ResourcePoolStatusRequest"]
    outcome = pipeline.update_status(new, old, a_write(version))

    assert isinstance(outcome, Rejected)
    assert {str(error.path) for error in outcome.errors} == {f"status.{name}" for name in names}


def test_a_client_of_one_version_keeps_the_fields_of_the_other() -> None:
    pipeline = PIPELINES["ResourcePoolStatusRequest"]
    old = a_question("d.e", ttl_seconds_after_complete=60)
    sent = a_question("d.e")

    outcome = pipeline.update(sent, old, a_write("v1alpha3"))

    assert isinstance(outcome, Accepted)
    assert outcome.object.spec.ttl_seconds_after_complete == 60


@pytest.mark.parametrize("seconds", [-1])
def test_time_to_live_is_not_negative(seconds: int) -> None:
    question = replace(
        a_question("d.e", ttl_seconds_after_complete=seconds), metadata=ObjectMeta(name="q")
    )

    outcome = PIPELINES["ResourcePoolStatusRequest"].create(question, a_write("v1alpha1"))

    assert isinstance(outcome, Rejected)
    assert str(outcome.errors[0].path) == "spec.ttlSecondsAfterComplete"
