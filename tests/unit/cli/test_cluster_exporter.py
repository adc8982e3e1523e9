"""The exporter computes metrics when it is scraped, and only if the cluster has changed."""

from __future__ import annotations

import asyncio
import re
from threading import current_thread
from typing import Any

from prometheus_client import generate_latest

from allot.cli.cluster_exporter import ClusterExporter, ExporterEndpoints
from allot.questions.cluster_metrics import Figures, compute_figures
from allot.questions.observed_cluster import ObservedCluster, UnreadableError
from allot.testing.builders import a_pod
from allot.testing.observed_clusters import observed
from tests.unit.questions.test_cluster_metrics import a_cluster


class FakeSource:
    """A cluster that the test changes."""

    def __init__(self, cluster: ObservedCluster, revision: int | None = 1) -> None:
        self.cluster = cluster
        self.revision = revision
        self.failure = ""
        self.is_readable = True

    async def read(self) -> ObservedCluster:
        if not self.is_readable:
            raise UnreadableError("pods could not be read")
        return self.cluster


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def text(exporter: ClusterExporter) -> str:
    return generate_latest(exporter.registry).decode()


def test_unchanged_cluster_is_not_computed_again() -> None:
    source, clock = FakeSource(a_cluster()), FakeClock()
    exporter = ClusterExporter(source, min_seconds=1.0, clock=clock)
    for _ in range(3):
        asyncio.run(exporter.refresh())
        clock.seconds += 60
    assert exporter.computations == 1

    source.cluster, source.revision = a_cluster(a_pod("waits")), 2
    asyncio.run(exporter.refresh())
    assert exporter.computations == 2
    assert 'allot_pending_pods{cause="Fits"} 1.0' in text(exporter)


def test_many_scrapes_of_a_changing_cluster_share_figures() -> None:
    source, clock = FakeSource(a_cluster()), FakeClock()
    exporter = ClusterExporter(source, min_seconds=5.0, clock=clock)
    for revision in range(10):
        source.revision = revision
        asyncio.run(exporter.refresh())
        clock.seconds += 1
    assert exporter.computations == 2


def test_figures_that_take_long_are_kept_for_longer() -> None:
    source, clock = FakeSource(a_cluster(), None), FakeClock()
    exporter = ClusterExporter(source, min_seconds=5.0, clock=clock, pauses=4.0)
    read = source.read

    async def slowly() -> ObservedCluster:
        clock.seconds += 10
        return await read()

    source.read = slowly  # type: ignore[method-assign]
    for _ in range(100):
        asyncio.run(exporter.refresh())
        clock.seconds += 1
    assert exporter.computations == 3  # each takes ten seconds, then forty pass


def test_the_end_of_the_process_does_not_wait_for_figures(monkeypatch: Any) -> None:
    is_daemon: list[bool] = []

    def noted(*arguments: Any) -> Figures:
        is_daemon.append(current_thread().daemon)
        return compute_figures(*arguments)

    monkeypatch.setattr("allot.cli.cluster_exporter.compute_figures", noted)
    asyncio.run(ClusterExporter(FakeSource(a_cluster())).refresh())
    assert is_daemon == [True]


def test_a_listed_cluster_is_read_each_time() -> None:
    clock = FakeClock()
    exporter = ClusterExporter(FakeSource(a_cluster(), None), min_seconds=1.0, clock=clock)
    for _ in range(3):
        asyncio.run(exporter.refresh())
        clock.seconds += 60
    assert exporter.computations == 3


def test_figures_of_a_cluster_that_does_not_answer_keep_their_time() -> None:
    source, clock = FakeSource(a_cluster(a_pod("waits"))), FakeClock()
    exporter = ClusterExporter(source, min_seconds=1.0, clock=clock)
    asyncio.run(exporter.refresh())
    before = text(exporter)
    source.failure = "connection refused"
    source.revision = 2
    clock.seconds += 600
    asyncio.run(exporter.refresh())
    assert text(exporter) == before


def test_ages_grow_while_nothing_changes() -> None:
    source, clock = FakeSource(a_cluster(a_pod("waits"))), FakeClock()
    exporter = ClusterExporter(source, min_seconds=1.0, clock=clock)
    asyncio.run(exporter.refresh())
    before = age(exporter)
    clock.seconds += 60
    asyncio.run(exporter.refresh())
    assert exporter.computations == 1
    assert age(exporter) > before  # of the machine's time, which is later than that of the cluster


def age(exporter: ClusterExporter) -> float:
    (found,) = re.findall(r'oldest_seconds\{cause="Fits"\} (\S+)', text(exporter))
    return float(found)


def test_a_scrape_brings_the_metrics_up_to_date() -> None:
    source, clock = FakeSource(observed()), FakeClock()
    exporter = ClusterExporter(source, min_seconds=0.0, clock=clock)
    pages = ExporterEndpoints(exporter)
    asyncio.run(exporter.refresh())
    source.cluster, source.revision = a_cluster(), 2
    assert 'allot_class_devices{class="gpu.example.com",state="free"} 16.0' in scraped(pages)
    source.is_readable, source.revision = False, 3
    assert 'allot_class_devices{class="gpu.example.com",state="free"} 16.0' in scraped(pages)


def scraped(pages: ExporterEndpoints) -> str:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "method": "GET", "path": "/metrics", "headers": []}
    asyncio.run(pages(scope, receive, send))
    assert sent[0]["status"] == 200
    body: bytes = sent[1]["body"]
    return body.decode()
