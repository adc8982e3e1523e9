"""`allot devices --watch`: prints what informers bring, and says when the cluster does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from allot.cli.devices import _watch
from allot.client import resources
from allot.features import DEFAULTS
from allot.questions.class_names import UnknownClassError
from allot.questions.devices import DeviceFilter
from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import ObservedCluster, UnreadableError
from allot.questions.reconnecting_cluster import ReconnectingCluster
from allot.testing.builders import a_claim, a_device, a_slice, an_allocation
from allot.testing.observed_clusters import observed, resource_of

SLICE = a_slice(a_device("gpu-0"), a_device("gpu-1"), node="node-1")
HELD = a_claim(name="c", allocation=an_allocation("gpu-1", pool="node-1"))


class EndOfTestError(Exception):
    """Ends the watch."""


class ScriptedCluster:
    """Plays steps, one after the other, and ends."""

    def __init__(self, cluster: ObservedCluster, *steps: Callable[[ScriptedCluster], None]) -> None:
        self.devices = LiveDevices(DEFAULTS)
        self.revision = 0
        self.is_loading = True
        self._failure = ""
        self._looks = 0
        self._cluster = cluster
        self._steps = steps

    @property
    def failure(self) -> str:
        """Read by each look of the watch."""
        self._looks += 1
        return self._failure

    @failure.setter
    def failure(self, value: str) -> None:
        self._failure = value

    def observed(self) -> ObservedCluster:
        return self._cluster

    def put(self, obj: Any) -> None:
        self.devices.change(resource_of(obj), None, obj)
        self.revision += 1

    async def run(self) -> None:
        for step in self._steps:
            step(self)
            looks = self._looks
            while self._looks < looks + 4:
                await asyncio.sleep(0)
        raise EndOfTestError


def loaded(source: ScriptedCluster) -> None:
    source.put(SLICE)
    source.is_loading = False


def watch(source: ScriptedCluster, wanted: DeviceFilter | None = None) -> None:
    followed = cast("ReconnectingCluster", source)
    asyncio.run(_watch(followed, wanted or DeviceFilter(), 0.001, "table", None))


def test_all_devices_then_those_that_change(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EndOfTestError):
        watch(ScriptedCluster(observed(), loaded, lambda source: source.put(HELD)))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[2] for line in lines if line[:1] == ["node-1"]] == ["gpu-0", "gpu-1", "gpu-1"]
    assert ["2", "free"] in lines


def test_a_cluster_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(source: ScriptedCluster) -> None:
        source.failure = "connection refused"

    def recover(source: ScriptedCluster) -> None:
        source.failure = ""

    with pytest.raises(EndOfTestError):
        watch(ScriptedCluster(observed(), loaded, fail, recover))

    assert capsys.readouterr().err.splitlines() == [
        "note: the cluster does not answer: connection refused",
        "note: the cluster answers again",
    ]


def test_an_unknown_class() -> None:
    with pytest.raises(UnknownClassError, match="no DeviceClass missing"):
        watch(ScriptedCluster(observed(), loaded), DeviceFilter(class_name="missing"))


def test_slices_that_may_not_be_read() -> None:
    cluster = observed()
    cluster.objects.unread[resources.RESOURCE_SLICES] = "forbidden"

    with pytest.raises(UnreadableError, match="resourceslices"):
        watch(ScriptedCluster(cluster, loaded))
