"""A recording in the dashboard: the floor plan of its end, and of every moment before."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.floor_plan import STATES
from allot.dashboard.recorded_cluster import RecordedCluster
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.recording.reader import Recording
from allot.questions.recording.recorder import observed, open_log
from allot.questions.recording.writer import Limits
from allot.testing.builders import a_claim, a_device, a_pod, a_slice, an_allocation

START = datetime(2026, 5, 1, 14, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def write_recording(path: Path) -> None:
    """At 0: one free device and a pending pod. At 10 a claim holds the device. At 20 it is released. Until 30."""
    first = Snapshot()
    first.server_version = "v1.38.0"
    log = open_log(path, observed(first, KINDS, anonymized=False), Limits(), b"salt")
    pod: Any = a_pod()
    log.put(resources.RESOURCE_SLICES, a_slice(a_device("a")), at(0))
    log.put(resources.PODS, pod, at(0))
    log.put(resources.RESOURCE_CLAIMS, a_claim(), at(0))
    log.begin(at(0))
    log.put(resources.RESOURCE_CLAIMS, a_claim(allocation=an_allocation("a")), at(10))
    log.put(resources.RESOURCE_CLAIMS, a_claim(), at(20))
    log.drop(resources.PODS, pod.key, at(20))
    log.end(at(30))


def test_history_is_that_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    write_recording(path)

    async def story() -> None:
        recording = Recording.open(path)
        at_end = ObservedCluster(recording.snapshot_at(recording.ends), now=recording.ends)
        dashboard = Dashboard(RecordedCluster("test", at_end, recording))
        await dashboard.start()
        try:
            assert dashboard.history.begins_at == START.timestamp()
            assert not dashboard.history.floor_at(at(5).timestamp())
            ((_, cell),) = dashboard.history.floor_at(at(15).timestamp()).cells
            assert STATES[cell.state] == "held"
            figures = dashboard.history.figures()
            assert [each.held for each in figures][:3] == [0, 1, 0]
            assert (sum(figures[0].pending.values()), figures[-1].pending) == (1, {})
            assert dashboard.source.observed().now == at(30)
        finally:
            await dashboard.stop()

    asyncio.run(story())
