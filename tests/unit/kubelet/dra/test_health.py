"""The health of devices."""

from __future__ import annotations

from allot.api.identities import DeviceId
from allot.kubelet.dra.health import UNKNOWN, DeviceHealth, HealthCache, HealthStatus, shortened

DEVICE = DeviceId("d", "p", "x")
KEY = ("p", "x")


def test_reports_expire() -> None:
    now = [0.0]
    cache = HealthCache(lambda: now[0])
    assert cache.get(DEVICE) == UNKNOWN

    assert cache.update("d", {KEY: DeviceHealth(HealthStatus.HEALTHY)}) == {DEVICE}
    assert cache.update("d", {KEY: DeviceHealth(HealthStatus.HEALTHY)}) == set()
    assert cache.expire() == (set(), 30.0)
    now[0] = 30.0
    assert cache.get(DEVICE) == UNKNOWN
    assert cache.expire() == ({DEVICE}, None)


def test_a_driver_sets_its_own_timeout() -> None:
    now = [0.0]
    cache = HealthCache(lambda: now[0])
    cache.update("d", {KEY: DeviceHealth(HealthStatus.UNHEALTHY, "hot", 5.0)})
    now[0] = 4.9
    assert cache.get(DEVICE) == DeviceHealth(HealthStatus.UNHEALTHY, "hot")
    now[0] = 5.0
    assert cache.get(DEVICE).health is HealthStatus.UNKNOWN


def test_long_messages_are_cut() -> None:
    assert shortened("x" * 1024) == "x" * 1024
    assert shortened("x" * 1025) == "x" * 1021 + "..."
    assert len(shortened("ä" * 600).encode()) <= 1024
