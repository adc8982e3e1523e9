"""The metrics of a cluster, computed when they are asked for: `allot exporter` follows a cluster, `allot up` lists its own.

A followed cluster that has not changed costs nothing: its last figures still hold.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import CollectorRegistry

from allot.apiserver.pacing import HUGE, Workers
from allot.client.client import Client
from allot.client.cluster_gates import gates_of_cluster
from allot.client.server_gates import API_SERVER, SCHEDULER
from allot.client.wall_clock import utc_now
from allot.endpoints import ComponentEndpoints, Message
from allot.exposition_sharing import shared_exposition
from allot.public.cluster_reading import Reading, read_objects
from allot.questions.cluster_metrics import ClusterMetrics, MetricsDetail, Waits, compute_figures
from allot.questions.observed_cluster import KINDS, ObservedCluster, UnreadableError
from allot.rules import RuleSet
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import within

if TYPE_CHECKING:
    from allot.exposition import Exposition
    from allot.questions.reconnecting_cluster import ReconnectingCluster

log = logging.getLogger(__name__)

DECISION_SECONDS: Final = 5.0
"""After so long the causes of further kinds of pending pods are not looked for."""
MIN_SECONDS: Final = 10.0
"""Inside `allot up`, figures are kept for so long ..."""
PAUSES: Final = 4.0
"""... and for so many times as long as it takes to compute them."""


class MetricsSource(Protocol):
    """Where the objects of a cluster come from."""

    @property
    def revision(self) -> int | None:
        """Another number after each change; None if only reading tells."""

    @property
    def failure(self) -> str:
        """Why the objects may be outdated; empty if they are not."""

    async def read(self) -> ObservedCluster:
        """The cluster now. Raises `ClientError`, `UnreadableError`."""


class ListedCluster:
    """A cluster whose objects are listed each time."""

    revision = None
    failure = ""

    def __init__(
        self,
        client: Client,
        configuration: SchedulerConfiguration | None = None,
        rules: RuleSet | None = None,
    ) -> None:
        self._client = client
        self._configuration = configuration or SchedulerConfiguration()
        self._rules = rules

    async def read(self) -> ObservedCluster:
        what = Reading(KINDS, gate_pages=(SCHEDULER, API_SERVER))
        objects = await read_objects(self._client, what)
        known = gates_of_cluster(objects, {}, self._rules)
        now = utc_now()
        return ObservedCluster(
            objects, known.gates, known.rules, self._configuration, now
        ).checked()


class FollowedCluster:
    """A cluster that informers follow."""

    def __init__(self, cluster: ReconnectingCluster) -> None:
        self._cluster = cluster

    @property
    def revision(self) -> int | None:
        return self._cluster.revision

    @property
    def failure(self) -> str:
        return (
            "its first lists are not complete"
            if self._cluster.is_loading
            else self._cluster.failure
        )

    async def read(self) -> ObservedCluster:
        return self._cluster.observed().checked()


class ClusterExporter:
    """The metrics of one cluster, for a registry."""

    def __init__(
        self,
        source: MetricsSource,
        detail: MetricsDetail = MetricsDetail(),  # noqa: B008 - a value
        min_seconds: float = MIN_SECONDS,
        waits: Waits | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        pauses: float = 0.0,
    ) -> None:
        """Figures are kept for `min_seconds`, and for `pauses` times as long as it takes to compute them."""
        self.registry = CollectorRegistry()
        self._shared = shared_exposition(lambda: self.registry)
        self.has_figures = False
        self.computations = 0
        """How often figures were computed; tests count it."""
        self._metrics = ClusterMetrics(self.registry, waits)
        self._source = source
        self._detail = detail
        self._min_seconds = min_seconds
        self._pauses = pauses
        self._clock = clock
        self._updating = asyncio.Lock()
        self._workers = Workers()
        """The end of the process does not wait for them."""
        self._updated = 0.0
        self._pause = 0.0
        self._revision: int | None = None

    async def refresh(self) -> None:
        """Bring the figures up to date, if they are not. Raises `ClientError`, `UnreadableError`.

        While the cluster cannot be followed, the last figures stay, with their time.
        """
        async with self._updating:
            if self.has_figures and self._clock() - self._updated < self._pause:
                return
            if self.has_figures and self._source.failure:
                return
            revision = self._source.revision
            if self.has_figures and revision is not None and revision == self._revision:
                self._metrics.confirm(utc_now())
                return
            await self._compute()
            self._revision = revision

    async def _compute(self) -> None:
        started = self._clock()
        cluster = await self._source.read()
        is_over = within(DECISION_SECONDS, self._clock)()
        figures = await self._workers.run(
            HUGE + 1, partial(compute_figures, cluster, self._detail, is_over)
        )
        for name in figures.left_out:
            log.warning("series by %s are left out: there are too many", name)
        self._updated = self._clock()
        seconds = self._updated - started
        self._pause = max(self._min_seconds, self._pauses * seconds)
        self._metrics.update(cluster, figures, seconds)
        self.has_figures = True
        self.computations += 1

    async def page(self, accept: str) -> Exposition:
        """The metrics, of a few seconds ago at most."""
        await self.refresh()
        return await self._shared.page(accept)


class ExporterEndpoints(ComponentEndpoints):
    """Health and metrics. A request for the metrics brings them up to date first."""

    def __init__(self, exporter: ClusterExporter) -> None:
        super().__init__(lambda: exporter.has_figures, lambda: exporter.registry)
        self._exporter = exporter

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope.get("path") == "/metrics" and self._exporter.has_figures:
            try:
                await self._exporter.refresh()
            except UnreadableError as error:
                log.warning("the metrics are outdated: %s", error)
        await super().__call__(scope, receive, send)
