"""When finished jobs are to be deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.controllers.ttl_after_finished import expires_at

ENDED = "2026-01-01T00:00:00Z"


def a_job(
    ttl: int | None, type_: str = "Complete", status: str = "True", **metadata: Any
) -> RawObject:
    condition = {"type": type_, "status": status, "lastTransitionTime": ENDED}
    return RawObject(
        {
            "metadata": {"name": "j", **metadata},
            "spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl},
            "status": {"conditions": [condition]},
        }
    )


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        pytest.param(a_job(5), 5, id="complete"),
        pytest.param(a_job(0, "Failed"), 0, id="failed"),
        pytest.param(a_job(None), None, id="may-stay"),
        pytest.param(a_job(5, "Suspended"), None, id="not-finished"),
        pytest.param(a_job(5, status="False"), None, id="not-yet-true"),
        pytest.param(a_job(5, deletionTimestamp=ENDED), None, id="on-its-way-out"),
    ],
)
def test_expiry(job: RawObject, seconds: int | None) -> None:
    expected = None if seconds is None else datetime(2026, 1, 1, 0, 0, seconds, tzinfo=UTC)

    assert expires_at(job) == expected
