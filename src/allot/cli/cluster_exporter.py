"""Reads a cluster and updates its metrics: in a loop for `allot exporter`, when asked for inside `allot up`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry

from allot.client.client import Client
from allot.client.cluster_gates import gates_of_cluster
from allot.client.errors import ClientError
from allot.client.server_gates import API_SERVER, SCHEDULER
from allot.public.cluster_reading import Reading, read_objects
from allot.questions.cluster_metrics import ClusterMetrics, MetricsDetail, compute_figures
from allot.questions.observed_cluster import KINDS, ObservedCluster, UnreadableError
from allot.rules import RuleSet
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import within

if TYPE_CHECKING:
    from allot.exposition import Exposition

log = logging.getLogger(__name__)

DECISION_SECONDS: Final = 5.0
"""After so long the causes of further kinds of pending pods are not looked for."""
MIN_SECONDS: Final = 10.0
"""Inside `allot up`, figures are kept for so long."""


class ClusterExporter:
    """The metrics of one cluster, up to date as of the last `update`."""

    def __init__(
        self,
        client: Client,
        detail: MetricsDetail = MetricsDetail(),  # noqa: B008 - a value
        configuration: SchedulerConfiguration | None = None,
        rules: RuleSet | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = CollectorRegistry()
        self.has_figures = False
        self._metrics = ClusterMetrics(self.registry)
        self.client = client
        self._detail = detail
        self._configuration = configuration or SchedulerConfiguration()
        self._rules = rules
        self._clock = clock
        self._updating = asyncio.Lock()
        self._updated = 0.0

    async def update(self) -> None:
        """Read the cluster and compute. Raises `ClientError`, `UnreadableError`."""
        started = self._clock()
        what = Reading(KINDS, gate_pages=(SCHEDULER, API_SERVER))
        objects = await read_objects(self.client, what)
        known = gates_of_cluster(objects, {}, self._rules)
        now = datetime.now(UTC)
        cluster = ObservedCluster(
            objects, known.gates, known.rules, self._configuration, now
        ).checked()
        is_over = within(DECISION_SECONDS, self._clock)()
        figures = await asyncio.to_thread(compute_figures, cluster, self._detail, is_over)
        for name in figures.left_out:
            log.warning("series by %s are left out: there are too many", name)
        self._updated = self._clock()
        self._metrics.update(cluster, figures, self._updated - started)
        self.has_figures = True

    async def run(self, interval: float) -> None:
        """Update until cancelled; a cluster that does not answer is asked again."""
        while True:
            try:
                await self.update()
            except (ClientError, UnreadableError) as error:
                log.warning("the cluster could not be read: %s", error)
            await asyncio.sleep(interval)

    async def page(self, accept: str) -> Exposition:
        """The metrics, of a few seconds ago at most."""
        from allot.exposition import exposition

        async with self._updating:
            if not self.has_figures or self._clock() - self._updated > MIN_SECONDS:
                await self.update()
        return exposition(self.registry, accept)
