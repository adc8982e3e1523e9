"""Devices are found in the slices as they are now, though slices are looked into once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from allot.api.identities import DeviceId
from allot.api.slices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.apiserver.admission import published_devices
from allot.apiserver.admission.published_devices import PublishedDevices


class Slices:
    """A cache with slices of one pool."""

    is_current = True

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}

    def of(self, _resource: object) -> Slices:
        return self

    def put(self, key: str, *names: str, revision: int, generation: int = 1) -> None:
        devices = tuple(
            Device(name=name, all_nodes=index % 2 == 0) for index, name in enumerate(names)
        )
        pool = ResourcePool(name="p", generation=generation)
        obj = ResourceSlice(spec=ResourceSliceSpec(driver="d", pool=pool, devices=devices or None))
        self.stored[key] = SimpleNamespace(key=key, revision=revision, object=obj)

    def indexed(self, place: tuple[str, str]) -> list[Any]:
        return list(self.stored.values()) if place == ("d", "p") else []

    def device(self, key: str, position: int) -> Device:
        found: Device = self.stored[key].object.spec.devices[position]
        return found


def find(published: PublishedDevices, *names: str) -> dict[str, Device]:
    wanted = [*(DeviceId("d", "p", name) for name in names), DeviceId("d", "q", "a")]
    found = asyncio.run(published.find(wanted))
    return {device.device: each for device, each in found.items()}


def test_a_slice_that_changes_is_looked_into_again() -> None:
    slices = Slices()
    published = PublishedDevices(slices)  # type: ignore[arg-type]
    slices.put("s", "a", "b", "a", revision=1)

    for _ in range(2):
        found = find(published, "a", "b", "c")
        assert found == {"a": slices.device("s", 0), "b": slices.device("s", 1)}

    slices.put("s", "c", "a", revision=2)
    found = find(published, "a", "b", "c")
    assert found == {"a": slices.device("s", 1), "c": slices.device("s", 0)}

    slices.put("s", revision=3)
    assert find(published, "a") == {}


def test_the_newest_generation_counts() -> None:
    slices = Slices()
    published = PublishedDevices(slices)  # type: ignore[arg-type]
    slices.put("s", "b", "a", revision=1, generation=2)
    slices.put("t", "a", revision=2, generation=1)
    slices.put("u", "c", "d", "a", revision=3, generation=2)

    assert find(published, "a") == {"a": slices.device("s", 1)}


def test_not_all_slices_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_devices, "MAX_KNOWN", 2)
    slices = Slices()
    published = PublishedDevices(slices)  # type: ignore[arg-type]
    for number in range(5):
        slices.put(f"s{number}", f"d{number}", revision=number)

    assert len(find(published, *(f"d{number}" for number in range(5)))) == 5
    assert len(published._positions) <= 2
