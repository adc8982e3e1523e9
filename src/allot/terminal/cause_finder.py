"""Why pods are pending, found again while the cluster changes.

Causes take long to find: in a thread, with pauses that are longer than the search, and only while they are looked at or
not known yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from allot.questions.pending import PendingPods
from allot.terminal.cluster_source import ClusterSource
from allot.terminal.explanations import find_causes

LOOK_SECONDS: Final = 0.25
PAUSE_SECONDS: Final = 2.0
REST_FACTOR: Final = 4
"""After a search of a second, the next one comes after so many at the earliest."""


class CauseFinder:
    """The causes of a cluster, as of the last search."""

    def __init__(self, source: ClusterSource) -> None:
        self.found = PendingPods()
        self.searches = 0
        """Searches that have ended."""
        self._source = source
        self._revision: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether a search has ended."""
        return bool(self.searches)

    async def run(self, is_looked_at: Callable[[], bool]) -> None:
        """Search until cancelled."""
        pause = LOOK_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = LOOK_SECONDS
            revision = self._source.revision
            is_wanted = is_looked_at() or not self.is_known
            if self._source.is_loading or revision == self._revision or not is_wanted:
                continue
            started = time.monotonic()
            cluster = self._source.observed()
            try:
                self.found = await asyncio.to_thread(find_causes, cluster)
            except Exception as error:  # noqa: BLE001 - shown; the other views go on
                self.found = PendingPods(notes=(f"{type(error).__name__}: {error}",))
            self._revision = revision
            self.searches += 1
            pause = max(PAUSE_SECONDS, REST_FACTOR * (time.monotonic() - started))
