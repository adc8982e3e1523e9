"""A recorded cluster: its changes are told in order, at the times when they happened, and history has them all."""

from __future__ import annotations

import asyncio
from typing import Final

from allot.client.snapshot import Snapshot
from allot.dashboard.cluster_source import FixedCluster
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.recording.reader import Recording

MIN_STEP_SECONDS: Final = 1.0
MAX_STEPS: Final = 2_000
"""Changes nearer to each other than a second, or than this part of the recording, are one step of history."""


class RecordedCluster(FixedCluster):
    """The cluster at the end of a recording, with what happened before."""

    def __init__(self, title: str, cluster: ObservedCluster, recording: Recording) -> None:
        """`cluster` is that at the end of the recording."""
        super().__init__(title, cluster)
        self._recording = recording
        self._now = recording.begins

    def clock(self) -> float:
        """The time in the recording."""
        return self._now.timestamp()

    async def start(self) -> None:
        """Tell all objects of the beginning, then the changes; other tasks run in between."""
        recording = self._recording
        objects = recording.snapshot_at(recording.begins)
        self._replace_objects(objects)
        await self._deliver_all(objects)
        await self.on_moment()
        length = (recording.ends - recording.begins).total_seconds()
        step = max(MIN_STEP_SECONDS, length / MAX_STEPS)
        has_changed = False
        for change in recording.changes():
            if (change.at - self._now).total_seconds() >= step:
                if has_changed:
                    await self.on_moment()
                    await asyncio.sleep(0)
                self._now = change.at
            has_changed = True
            resource = change.key.resource
            old = self.objects.get(resource, change.key.key)
            if change.object is None:
                self.objects.remove(resource, change.key.key)
            else:
                self.objects.put(resource, change.object)
            if old is not None or change.object is not None:
                self._changed(resource, old, change.object)
        if has_changed:
            await self.on_moment()
        self._now = recording.ends

    def _replace_objects(self, objects: Snapshot) -> None:
        """Have these objects, in the snapshot that others know."""
        for resource in KINDS:
            for obj in self.objects.of(resource):
                self.objects.remove(resource, resource.codec.key(obj))
            for obj in objects.of(resource):
                self.objects.put(resource, obj)

    async def stop(self) -> None:
        self._recording.close()
