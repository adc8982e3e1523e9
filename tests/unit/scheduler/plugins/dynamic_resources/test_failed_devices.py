from __future__ import annotations

import asyncio

import pytest

from allot.api.identities import DeviceId, SharedDeviceId
from allot.scheduler.plugins.dynamic_resources import failed_devices
from allot.scheduler.plugins.dynamic_resources.failed_devices import (
    HELD_DEVICE_BACKOFF,
    FailedDevices,
)
from allot.scheduler.state.pods import PodInfo
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time
from tests.unit.scheduler.state.objects import a_pod_info

POD = a_pod_info("p")
BROKEN = SharedDeviceId("fpga.example.com", "pool", "fpga-0", "")
AVOIDED = frozenset({DeviceId("fpga.example.com", "pool", "fpga-0")})


class Memory:
    """What failed, and which pods were tried again when."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.tasks: list[asyncio.Task[None]] = []
        self.retried: list[tuple[str, int]] = []
        self.failed = FailedDevices(
            lambda work: self.tasks.append(asyncio.create_task(work)), self.retry, self.clock.now
        )

    def retry(self, pod: PodInfo) -> None:
        self.retried.append((pod.name, round(self.clock.now())))


def test_a_device_that_others_hold_is_avoided_for_a_shorter_time() -> None:
    async def run() -> None:
        memory = Memory()
        for seconds in (5, 10, 20, 30, 30):
            memory.failed.add(POD, AVOIDED, HELD_DEVICE_BACKOFF)
            await asyncio.sleep(seconds - 1)
            assert memory.failed.avoided_devices(POD) == AVOIDED
            await asyncio.sleep(2)
            assert memory.failed.avoided_devices(POD) == frozenset()

    run_in_virtual_time(run())


def test_a_device_that_failed_is_avoided_longer_each_time() -> None:
    async def run() -> None:
        memory = Memory()
        for seconds in (30, 60, 120, 240, 480, 600, 600):
            memory.failed.add(POD, [BROKEN])
            await asyncio.sleep(seconds - 1)
            assert memory.failed.avoided_devices(POD) == AVOIDED
            await asyncio.sleep(2)
            assert memory.failed.avoided_devices(POD) == frozenset()

    run_in_virtual_time(run())


def test_the_pod_is_tried_again_when_it_avoids_the_device_no_longer() -> None:
    async def run() -> None:
        memory = Memory()
        began = round(memory.clock.now())
        memory.failed.add(POD, [BROKEN])
        await asyncio.sleep(100)
        assert memory.retried == [("p", began + 30)]

    run_in_virtual_time(run())


def test_other_pods_do_not_avoid_it() -> None:
    async def run() -> None:
        memory = Memory()
        memory.failed.add(POD, [BROKEN])
        assert memory.failed.avoided_devices(a_pod_info("other")) == frozenset()
        await asyncio.gather(*memory.tasks)

    run_in_virtual_time(run())


def test_nothing_is_remembered_of_pods_that_are_bound_or_gone() -> None:
    async def run() -> None:
        memory = Memory()
        memory.failed.add(POD, [BROKEN])
        memory.failed.forget(POD)
        assert memory.failed.avoided_devices(POD) == frozenset()
        await asyncio.gather(*memory.tasks)
        assert memory.retried == []

    run_in_virtual_time(run())


def test_the_oldest_failures_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_devices, "MAX_REMEMBERED", 2)

    async def run() -> None:
        memory = Memory()
        pods = [a_pod_info(name) for name in ("first", "second", "third")]
        for pod in pods:
            memory.failed.add(pod, [BROKEN])
        assert [bool(memory.failed.avoided_devices(pod)) for pod in pods] == [False, True, True]
        await asyncio.gather(*memory.tasks)

    run_in_virtual_time(run())
