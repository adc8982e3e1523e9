"""Rows that are kept up to date are those of `list_devices`."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.base import replace
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.identities import DeviceId
from allot.api.meta import ObjectMeta
from allot.api.resource import DeviceTaint
from allot.api.slices import ResourcePool
from allot.client.snapshot import Snapshot
from allot.features import DEFAULTS
from allot.questions.devices import DeviceRow, list_devices
from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import ObservedCluster
from allot.testing.builders import a_claim, a_device, a_slice, an_allocation
from allot.testing.observed_clusters import observed, resource_of


def a_rule(name: str, device: str) -> DeviceTaintRule:
    spec = DeviceTaintRuleSpec(
        device_selector=DeviceTaintSelector(device=device),
        taint=DeviceTaint(key="broken", effect="NoSchedule"),
    )
    return DeviceTaintRule(ObjectMeta(name=name), spec)


def slice_(name: str, node: str, generation: int, *devices: str) -> Any:
    found = a_slice(*map(a_device, devices), name=name, pool=ResourcePool(node, generation, 1))
    return replace(found, spec=replace(found.spec, node_name=node))


VERSIONS: list[list[Any]] = [
    [slice_("s1", "node-1", 1, "a", "b"), slice_("s1", "node-1", 2, "a"), slice_("s1", "node-2", 1, "a")],
    [slice_("s2", "node-2", 1, "a", "b"), slice_("s2", "node-1", 2, "b", "c")],
    [a_claim(name="c1", allocation=an_allocation("a", pool="node-1")), a_claim(name="c1")],
    [a_claim(name="c2", allocation=an_allocation("b", "z", pool="node-2"))],
    [a_rule("r", "a"), a_rule("r", "b")],
]  # fmt: skip
"""Objects, each in several versions."""


def rows_of(devices: LiveDevices) -> list[DeviceRow]:
    devices.refresh()
    return sorted((row for rows in devices.pools.values() for row in rows), key=lambda row: row.id)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 2)), max_size=12))
def test_after_any_changes(changes: list[tuple[int, int | None]]) -> None:
    live = LiveDevices(DEFAULTS)
    objects = Snapshot()
    for number, version in changes:
        resource = resource_of(VERSIONS[number][0])
        key = VERSIONS[number][0].key
        old = objects.get(resource, key)
        new = None if version is None else VERSIONS[number][version % len(VERSIONS[number])]
        live.change(resource, old, new)
        if new is None:
            objects.remove(resource, key)
        else:
            objects.put(resource, new)
        if version == 1:
            live.refresh()

    assert rows_of(live) == list(list_devices(ObservedCluster(objects)).devices)


def test_only_pools_that_a_change_concerns_are_computed() -> None:
    slices = [slice_(f"s{n}", f"node-{n}", 1, "a") for n in range(5)]
    live = LiveDevices.of(observed(*slices))
    assert live.refresh(2) == 3, "in steps"
    assert live.refresh() == 0
    before = dict(live.pools)

    claim = a_claim(allocation=an_allocation("a", pool="node-3"))
    live.change(resource_of(claim), None, claim)

    live.refresh()
    changed = [pool.pool for pool, rows in live.pools.items() if rows is not before[pool]]
    assert changed == ["node-3"]


def test_a_device_as_it_is_published() -> None:
    live = LiveDevices.of(observed(slice_("s", "node-1", 1, "a")))
    driver = next(iter(rows_of(live))).driver

    published = live.published(DeviceId(driver, "node-1", "a"))

    assert published is not None
    slice_of_it, device = published
    assert (slice_of_it.metadata.name, device.name) == ("s", "a")
    assert live.published(DeviceId(driver, "node-1", "b")) is None
    assert live.published(DeviceId(driver, "node-9", "a")) is None
