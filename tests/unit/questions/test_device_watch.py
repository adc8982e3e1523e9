"""Which devices of a list have changed: the filter, classes, and pools that stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.classes import DeviceClass
from allot.features import DEFAULTS
from allot.questions.device_watch import DeviceWatch
from allot.questions.devices import DeviceFilter
from allot.questions.live_devices import LiveDevices
from allot.testing.builders import a_claim, a_class, a_device, a_slice, an_allocation
from allot.testing.observed_clusters import resource_of

H100 = a_device("big", {"model": "H100"})
L4 = a_device("small", {"model": "L4"})
ONE = a_slice(H100, L4, name="s1", node="node-1")
TWO = a_slice(a_device("other"), name="s2", node="node-2")
HELD = a_claim(name="c", allocation=an_allocation("big", pool="node-1"))
ONLY_H100 = a_class("class", 'device.attributes["gpu.example.com"].model == "H100"')
ONLY_L4 = a_class("class", 'device.attributes["gpu.example.com"].model == "L4"')


class Watched:
    """A watch, and the devices that it looks at."""

    def __init__(self, wanted: DeviceFilter) -> None:
        self.devices = LiveDevices(DEFAULTS)
        self.watch = DeviceWatch(wanted)
        self.change(None, ONE)
        self.change(None, TWO)

    def change(self, old: Any, new: Any) -> None:
        self.devices.change(resource_of(new or old), old, new)

    def changed(self, class_: DeviceClass | None = None) -> list[str]:
        return [row.device for row in self.watch.changed(self.devices, class_)]


def test_all_then_what_changes() -> None:
    watched = Watched(DeviceFilter())

    assert watched.changed() == ["big", "small", "other"]
    assert watched.changed() == []
    watched.change(None, HELD)
    assert watched.changed() == ["big"]
    watched.change(HELD, None)
    watched.change(TWO, None)
    assert watched.changed() == ["big"]  # a device that is gone has no row
    watched.change(None, TWO)
    assert watched.changed() == ["other"]


@pytest.mark.parametrize(
    ("wanted", "first", "after"),
    [
        pytest.param(DeviceFilter(free=True), ["big", "small", "other"], [], id="free"),
        pytest.param(DeviceFilter(held=True), [], ["big"], id="held"),
        pytest.param(DeviceFilter(node="node-2"), ["other"], [], id="node"),
        pytest.param(DeviceFilter(pool="node-1"), ["big", "small"], ["big"], id="pool"),
        pytest.param(DeviceFilter(driver="other.example.com"), [], [], id="driver"),
    ],
)
def test_the_filter(wanted: DeviceFilter, first: list[str], after: list[str]) -> None:
    watched = Watched(wanted)

    assert watched.changed() == first
    watched.change(None, HELD)
    assert watched.changed() == after


def test_a_class_that_changes() -> None:
    watched = Watched(DeviceFilter(class_name="class"))

    assert watched.changed(ONLY_H100) == ["big"]
    assert watched.changed(ONLY_L4) == ["small"]
    assert watched.changed(None) == []
    assert watched.changed(ONLY_H100) == ["big"]


def test_pools_that_stay_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(DeviceFilter())
    watched.changed()
    seen: list[str] = []
    takes = DeviceFilter.takes

    def noted(self: DeviceFilter, row: Any) -> bool:
        seen.append(row.device)
        return takes(self, row)

    monkeypatch.setattr(DeviceFilter, "takes", noted)
    watched.change(None, HELD)
    watched.changed()

    assert seen == ["big", "small"]
