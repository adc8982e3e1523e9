"""One stored ResourcePoolStatusRequest, two versions: neither erases what the other shows."""

from __future__ import annotations

from datetime import UTC, datetime

from allot.api import v1alpha1, v1alpha3
from allot.api.base import replace
from allot.api.meta import Condition, ObjectMeta
from allot.api.pool_status import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)

TIME = datetime(2026, 2, 7, 10, 30, tzinfo=UTC)

STORED = ResourcePoolStatusRequest(
    ObjectMeta(name="check"),
    ResourcePoolStatusRequestSpec(
        driver="gpu.example.com",
        limit=1,
        default_partition_type_attribute="gpu.example.com/profile",
        ttl_seconds_after_complete=60,
    ),
    ResourcePoolStatusRequestStatus(
        pool_count=3,
        pools=(
            PoolStatus(
                driver="gpu.example.com",
                pool_name="node-1",
                generation=5,
                resource_slice_count=2,
                validation_error="device gpu-0 appears in multiple slices",
            ),
        ),
        observation_time=TIME,
    ),
)


def test_the_version_of_the_kep() -> None:
    shown = v1alpha1.request_from_hub(STORED)

    assert shown.spec.ttl_seconds_after_complete == 60
    assert shown.status is not None
    assert shown.status.observation_time == TIME
    assert shown.status.truncated
    assert shown.status.total_matching_pools == 3
    assert shown.status.pools[0].slice_count == 2
    assert shown.status.validation_errors == (
        "pool node-1: device gpu-0 appears in multiple slices",
    )


def test_the_version_of_kubernetes() -> None:
    shown = v1alpha3.request_from_hub(STORED)

    assert shown.status is not None
    assert shown.status.pool_count == 3
    assert shown.status.pools[0].validation_error == "device gpu-0 appears in multiple slices"


def test_writing_back_what_was_read_changes_nothing() -> None:
    kep = v1alpha1.request_to_hub(v1alpha1.request_from_hub(STORED))
    kubernetes = v1alpha3.request_to_hub(v1alpha3.request_from_hub(STORED))

    assert v1alpha1.restore_unseen(kep, STORED) == STORED
    assert v1alpha3.restore_unseen(kubernetes, STORED) == STORED


def test_a_status_written_in_the_other_version_tells_its_time_in_the_condition() -> None:
    assert STORED.status is not None
    done = Condition(type="Complete", status="True", last_transition_time=TIME)
    status = replace(STORED.status, observation_time=None, conditions=(done,))
    stored = replace(STORED, status=status)

    shown = v1alpha1.request_from_hub(stored)

    assert shown.status is not None
    assert shown.status.observation_time == TIME
    assert v1alpha1.restore_unseen(v1alpha1.request_to_hub(shown), stored) == stored
