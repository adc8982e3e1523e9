"""Capturing published slices as a hardware description, and rendering them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from allot.api.base import replace
from allot.api.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.driver.capture import capture_hardware
from allot.driver.hardware import PoolKey
from allot.driver.reading import read_hardware

NODES = ("a", "n-0", "n-1", "n-2", "gpu-node")
texts = st.sampled_from(
    ["", "A100", "{i}", "{nodeName}", "}}", "a}}{", "{{", "1", "0x10", "yes", "0000:18:00.0", "~"]
) | st.text(st.characters(exclude_categories=["C"]), max_size=8)
quantities = st.sampled_from(["0", "1", "80Gi", "1500m"]).map(Quantity.parse)
attributes = st.one_of(
    texts.map(lambda text: DeviceAttribute(string=text)),
    st.integers(-5, 2**40).map(lambda number: DeviceAttribute(int_=number)),
    st.booleans().map(lambda value: DeviceAttribute(bool_=value)),
    st.sampled_from(["1.2.3", "10.0.0-rc.1"]).map(lambda each: DeviceAttribute(version=each)),
    st.lists(texts, min_size=1, max_size=3, unique=True).map(
        lambda each: DeviceAttribute(strings=tuple(each))
    ),
    st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(
        lambda each: DeviceAttribute(ints=tuple(each))
    ),
    st.just(DeviceAttribute(bools=(True, False))),
    st.just(DeviceAttribute(versions=("1.0.0", "2.0.0"))),
)
ranged = DeviceCapacity(
    Quantity.parse("8"),
    CapacityRequestPolicy(
        default=Quantity.parse("1"),
        valid_range=CapacityRequestPolicyRange(min=Quantity.parse("1"), step=Quantity.parse("1")),
    ),
)
taints = st.sampled_from(
    [
        DeviceTaint(key="example.com/a", effect="NoSchedule"),
        DeviceTaint(key="b", value="c", effect="None"),
    ]
)
selector = NodeSelector(
    (NodeSelectorTerm((NodeSelectorRequirement("example.com/rack", "In", ("1", "2")),)),)
)


@st.composite
def devices(draw: st.DrawFn, name: str, counter_sets: tuple[str, ...]) -> Device:
    is_shared = draw(st.booleans())
    return Device(
        name=name,
        attributes=draw(
            st.dictionaries(st.sampled_from(["model", "x.io/y", "links"]), attributes, max_size=2)
        ),
        capacity=draw(st.sampled_from([{}, {"memory": ranged} if is_shared else {}]))
        | draw(st.dictionaries(st.just("size"), quantities.map(DeviceCapacity), max_size=1)),
        consumes_counters=tuple(
            DeviceCounterConsumption(counter_set=each, counters={"c": Counter(draw(quantities))})
            for each in counter_sets[: draw(st.integers(0, len(counter_sets)))]
        ),
        taints=tuple(draw(st.lists(taints, max_size=1))),
        allow_multiple_allocations=is_shared or None,
        binding_conditions=draw(st.sampled_from([None, ("example.com/Ready",)])),
        binds_to_node=draw(st.sampled_from([None, True])),
    )


@st.composite
def pools(draw: st.DrawFn, driver: str, number: int) -> list[ResourceSlice]:
    """A complete pool: of a node, shared, or with slices for different nodes."""
    node = draw(st.sampled_from(NODES))
    selection: dict[str, Any] = draw(
        st.sampled_from(
            [{"node_name": node}] * 3 + [{"all_nodes": True}, {"node_selector": selector}, {}]
        )
    )
    suffix = draw(st.sampled_from(["", f"-{number}"]))
    name = f"{node}{suffix}" if suffix else f"{node}.{number}" if number else node
    sets = tuple(f"set-{each}" for each in range(draw(st.integers(0, 2))))
    parts = []
    if sets:
        counters = tuple(CounterSet(each, {"c": Counter(Quantity.parse("4"))}) for each in sets)
        parts.append(ResourceSliceSpec(shared_counters=counters))
    for part in range(draw(st.integers(0 if parts else 1, 3))):
        found = tuple(
            draw(devices(f"d-{part}-{index}", sets)) for index in range(draw(st.integers(0, 3)))
        )
        parts.append(ResourceSliceSpec(devices=found or None))
    generation = draw(st.integers(0, 3))
    return [
        ResourceSlice(
            ObjectMeta(name=f"{driver}-{number}-{index}"),
            replace(
                part,
                driver=driver,
                pool=ResourcePool(name, generation, len(parts)),
                **(selection or {"node_name": NODES[index % len(NODES)]}),
            ),
        )
        for index, part in enumerate(parts)
    ]


@st.composite
def clusters(draw: st.DrawFn) -> list[ResourceSlice]:
    found = []
    for driver in ("gpu.example.com", "nic.example.com"):
        for number in range(draw(st.integers(0, 3))):
            found += draw(pools(driver, number))
    return draw(st.permutations(found))


def by_pool(slices: Iterable[ResourceSlice]) -> dict[PoolKey, list[ResourceSliceSpec]]:
    found: dict[PoolKey, list[ResourceSliceSpec]] = {}
    for each in sorted(slices, key=lambda each: each.metadata.name):
        spec = each.spec
        pool = replace(spec.pool, generation=0)
        found.setdefault(PoolKey(spec.driver, pool.name), []).append(replace(spec, pool=pool))
    return found


@given(clusters())
def test_the_same_slices_are_rendered(slices: list[ResourceSlice]) -> None:
    """The same devices in the same order, in the same slices, for the same nodes."""
    captured = capture_hardware(slices, name="cluster")

    assert captured.notes == ()
    document = yaml.safe_load(yaml.safe_dump(captured.document, sort_keys=False))
    hardware = read_hardware(document, "cluster.yaml", "cluster")
    rendered = {key: list(hardware.slices(key)) for key in hardware.sources}
    assert rendered == by_pool(slices)
