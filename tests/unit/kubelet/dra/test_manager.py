"""When the checkpoint of claims is written, and what a kubelet that crashed continues from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from allot.kubelet.dra.checkpoint import Checkpoint
from allot.kubelet.dra.claim_info import (
    ClaimInfo,
    ClaimReference,
    PreparedClaim,
    PreparedDevice,
)
from allot.kubelet.dra.driver_plugin import DriverPlugin
from allot.kubelet.dra.manager import DraManager
from allot.kubelet.dra.metrics import DraMetrics
from allot.testing.builders import a_claim, a_pod, an_allocation

DRIVER = "gpu.example.com"
DEVICE = PreparedDevice("p", "gpu-0")


class ManualClock:
    """Timers fire when the test says so."""

    def __init__(self) -> None:
        self.timers: list[ManualTimer] = []

    def now(self) -> float:
        return 0.0

    def today(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps")

    def call_later(self, seconds: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self, callback)
        self.timers.append(timer)
        return timer

    def fire(self) -> None:
        for timer in tuple(self.timers):
            timer.cancel()
            timer.callback()


class ManualTimer:
    def __init__(self, clock: ManualClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self.callback = callback

    def cancel(self) -> None:
        if self in self._clock.timers:
            self._clock.timers.remove(self)


class CountedCheckpoint(Checkpoint):
    """Counts the writes: lines, and whole files."""

    begun = 0
    saves = 0

    def begin(self, infos: Iterable[ClaimInfo]) -> None:
        self.begun += 1
        super().begin(infos)

    def save(self, infos: Iterable[ClaimInfo]) -> None:
        self.saves += 1
        super().save(infos)


class RecordingDriver:
    """Notes what the checkpoint has when it is called."""

    driver = DRIVER
    is_simulated = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.prepared: set[str] = set()
        self.known: list[set[str]] = []

    def _note(self) -> None:
        self.known.append({info.reference.uid for info in Checkpoint(self._path).load()})

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        self._note()
        self.prepared.update(claim.uid for claim in claims)
        return {claim.uid: PreparedClaim((DEVICE,)) for claim in claims}

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        self._note()
        self.prepared.difference_update(claim.uid for claim in claims)
        return {claim.uid: "" for claim in claims}


class Drivers:
    def __init__(self, driver: DriverPlugin) -> None:
        self._driver = driver

    def get(self, driver: str) -> DriverPlugin:
        return self._driver


class Kubelet:
    """A manager with its driver and clock; `crashed` continues from the file."""

    def __init__(self, path: Path, driver: RecordingDriver | None = None) -> None:
        self.path = path
        self.driver = driver or RecordingDriver(path)
        self.clock = ManualClock()
        self.checkpoint = CountedCheckpoint(path)
        self.manager = DraManager(
            Drivers(self.driver), self.checkpoint, DraMetrics(CollectorRegistry()), self.clock
        )

    def crashed(self) -> Kubelet:
        return Kubelet(self.path, self.driver)

    def prepare(self, name: str) -> None:
        claim = a_claim(
            name=name, uid=f"uid-{name}", allocation=an_allocation("gpu-0", driver=DRIVER)
        )
        asyncio.run(self.manager.prepare(a_pod(name, uid=f"pod-{name}"), [claim]))

    def unprepare(self, name: str) -> None:
        asyncio.run(self.manager.unprepare(f"pod-{name}"))

    def written(self) -> dict[str, int]:
        """The devices of each claim in the file."""
        infos = Checkpoint(self.path).load()
        return {info.reference.uid: len(info.devices_by_driver[DRIVER]) for info in infos}


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path / "state")


def test_a_pod_costs_one_line(kubelet: Kubelet) -> None:
    """The file is replaced for many pods together."""
    for number in range(10):
        kubelet.prepare(f"c{number}")
        kubelet.unprepare(f"c{number}")

    assert (kubelet.checkpoint.begun, kubelet.checkpoint.saves) == (10, 0)
    kubelet.clock.fire()
    assert (kubelet.checkpoint.begun, kubelet.checkpoint.saves) == (10, 1)
    assert kubelet.written() == {}


def test_a_pod_that_is_prepared_again_costs_nothing(kubelet: Kubelet) -> None:
    kubelet.prepare("c")
    kubelet.prepare("c")

    assert kubelet.checkpoint.begun == 1


def test_a_claim_is_written_before_its_driver_is_called(kubelet: Kubelet) -> None:
    kubelet.prepare("a")
    kubelet.unprepare("a")

    assert kubelet.driver.known == [{"uid-a"}, {"uid-a"}]


def test_answers_are_written_shortly_after(kubelet: Kubelet) -> None:
    kubelet.prepare("a")
    assert kubelet.written() == {"uid-a": 0}

    kubelet.clock.fire()

    assert kubelet.written() == {"uid-a": 1}
    assert not kubelet.clock.timers


def test_answers_are_written_at_shutdown(kubelet: Kubelet) -> None:
    kubelet.prepare("a")

    kubelet.manager.close()

    assert kubelet.written() == {"uid-a": 1}
    assert not kubelet.clock.timers


def test_a_crash_after_prepare_loses_no_claim(kubelet: Kubelet) -> None:
    kubelet.prepare("a")

    after = kubelet.crashed()
    after.unprepare("a")
    after.clock.fire()

    assert after.driver.prepared == set()
    assert after.written() == {}


def test_a_crash_after_unprepare_repeats_it(kubelet: Kubelet) -> None:
    kubelet.prepare("a")
    kubelet.prepare("b")
    kubelet.unprepare("a")

    after = kubelet.crashed()
    assert after.manager.claims.pod_uids() == {"pod-a", "pod-b"}
    after.unprepare("a")
    after.prepare("b")
    after.clock.fire()

    assert after.driver.prepared == {"uid-b"}
    assert after.written() == {"uid-b": 1}


def test_a_write_that_fails_is_repeated(
    kubelet: Kubelet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_infos: Iterable[ClaimInfo]) -> None:
        raise OSError("no space left on device")

    kubelet.prepare("a")
    with monkeypatch.context() as patched:
        patched.setattr(kubelet.checkpoint, "save", full)
        kubelet.clock.fire()
    assert "no space left on device; retrying" in caplog.text

    kubelet.clock.fire()

    assert kubelet.written() == {"uid-a": 1}
