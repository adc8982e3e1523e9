"""CronJobs in virtual time: a week passes in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_node_manifest
from allot.testing.virtual_time import START

HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def cluster() -> Iterator[VirtualTimeCluster]:
    with VirtualTimeCluster(ClusterSettings()) as running:
        running.apply(a_node_manifest("n1"))
        yield running


def a_cron_job(
    schedule: str,
    *,
    name: str = "backup",
    run_seconds: int = 60,
    exit_code: int = 0,
    backoff_limit: int = 0,
    **spec: Any,
) -> dict[str, Any]:
    behaviour = {
        "allot.dev/run-seconds": str(run_seconds),
        "allot.dev/exit-code": str(exit_code),
    }
    template = {
        "metadata": {"annotations": behaviour},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {"spec": {"backoffLimit": backoff_limit, "template": template}},
            **spec,
        },
    }


def scheduled(cluster: VirtualTimeCluster, cron_job: str = "backup") -> list[str]:
    """When the jobs that still exist were to begin, in order."""
    return sorted(
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        for job in cluster.list("Job")
        if job["metadata"]["name"].startswith(f"{cron_job}-")
    )


def status(cluster: VirtualTimeCluster, name: str = "backup") -> dict[str, Any]:
    found = cluster.get("CronJob", name)
    assert found is not None
    return dict(found["status"])


@pytest.mark.slow
def test_a_week(cluster: VirtualTimeCluster) -> None:
    """Nights, working days and a job that fails: each at its times, with its history."""
    cluster.apply(
        a_cron_job("0 3 * * *", timeZone="Europe/Berlin"),
        a_cron_job("0 9-17 * * mon-fri", name="report"),
        a_cron_job("@daily", name="broken", exit_code=1, failedJobsHistoryLimit=2),
    )
    starts: dict[str, set[str]] = {"backup": set(), "report": set(), "broken": set()}

    for _ in range(7 * 24 * 2):
        cluster.advance(HOUR / 2)
        for name, seen in starts.items():
            seen.update(scheduled(cluster, name))

    assert sorted(starts["backup"]) == [f"2026-01-0{day}T03:00:00+01:00" for day in range(1, 8)], (
        "at night, by the clock of Berlin"
    )
    days = (1, 2, 5, 6, 7)  # 1 January 2026 is a Thursday
    hours = [f"2026-01-0{day}T{hour:02}:00:00Z" for day in days for hour in range(9, 18)]
    assert sorted(starts["report"]) == hours
    assert sorted(starts["broken"]) == [f"2026-01-0{day}T00:00:00Z" for day in range(2, 8)]

    assert len(scheduled(cluster, "backup")) == 3, "the history of successes"
    assert len(scheduled(cluster, "broken")) == 2, "and of failures"
    assert status(cluster)["lastScheduleTime"] == "2026-01-07T02:00:00Z"
    assert status(cluster)["lastSuccessfulTime"] == "2026-01-07T02:01:00Z"
    assert "active" not in status(cluster)
    assert "lastSuccessfulTime" not in status(cluster, "broken")


@pytest.mark.parametrize(
    ("policy", "active"),
    [("Allow", 3), ("Forbid", 1), ("Replace", 1)],
)
def test_concurrency(cluster: VirtualTimeCluster, policy: str, active: int) -> None:
    """Each job takes longer than the time to the next one."""
    cluster.apply(a_cron_job("*/10 * * * *", run_seconds=2 * HOUR, concurrencyPolicy=policy))

    cluster.advance(35 * 60)

    running = status(cluster)["active"]
    assert len(running) == active
    expected = {
        "Allow": ["00:10", "00:20", "00:30"],
        "Forbid": ["00:10"],
        "Replace": ["00:30"],
    }
    assert [moment[11:16] for moment in scheduled(cluster)] == expected[policy]


def test_a_suspended_cron_job_resumes_with_the_latest_time(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_cron_job("0 * * * *", suspend=True))
    cluster.advance(5 * HOUR + 60)
    assert not scheduled(cluster)

    cluster.apply(a_cron_job("0 * * * *", suspend=False))
    cluster.advance(30)

    assert scheduled(cluster) == ["2026-01-01T05:00:00Z"], "the times before are not made up for"


def test_a_starting_deadline(cluster: VirtualTimeCluster) -> None:
    """What could not begin in time is left out."""
    cluster.apply(a_cron_job("0 * * * *", suspend=True, startingDeadlineSeconds=60))
    cluster.advance(2 * HOUR + 120)

    cluster.apply(a_cron_job("0 * * * *", suspend=False, startingDeadlineSeconds=60))
    cluster.advance(30)
    assert not scheduled(cluster)

    cluster.advance(HOUR)
    assert scheduled(cluster) == ["2026-01-01T03:00:00Z"]


def test_a_deleted_job_is_missed(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_cron_job("30 * * * *", run_seconds=2 * HOUR))
    cluster.advance(31 * 60)
    [job] = status(cluster)["active"]

    cluster.delete("Job", job["name"])
    cluster.advance(60)

    assert "active" not in status(cluster)
    cluster.advance(10)
    assert "MissingJob" in {event["reason"] for event in cluster.list("events.v1")}


def test_the_jobs_of_a_deleted_cron_job_are_deleted(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_cron_job("30 * * * *"))
    cluster.advance(31 * 60)
    assert len(cluster.list("Job")) == 1

    cluster.delete("CronJob", "backup")
    cluster.advance(60)

    assert not cluster.list("Job")


def test_a_job_is_named_after_its_minute(cluster: VirtualTimeCluster) -> None:
    cluster.apply(a_cron_job("30 * * * *"))
    cluster.advance(31 * 60)

    [job] = cluster.list("Job")

    assert job["metadata"]["name"] == f"backup-{int(START.timestamp()) // 60 + 30}"
    [owner] = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "backup", True)


def test_a_bad_schedule_is_refused(cluster: VirtualTimeCluster) -> None:
    with pytest.raises(Exception, match=r"spec.schedule: Invalid value: .*above maximum \(59\)"):
        cluster.apply(a_cron_job("99 * * * *"))
    with pytest.raises(Exception, match=r"spec.timeZone: Invalid value: .*unknown time zone"):
        cluster.apply(a_cron_job("* * * * *", timeZone="Mars/Olympus"))
