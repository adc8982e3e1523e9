"""Hardware descriptions: what they stand for, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.driver.errors import HardwareError
from allot.driver.hardware import Hardware, PoolKey
from allot.driver.loading import load_hardware, profiles
from allot.driver.reading import read_hardware

DRIVER = "gpu.example.com"


def hardware(text: str, count: int | None = None) -> Hardware:
    return read_hardware(yaml.safe_load(text), "hw.yaml", "hw", count)


GOOD = """
nodes:
  count: 2
  labels: {example.com/number: "{node}"}
  capacity: {cpu: 64, memory: 256Gi}
pools:
- driver: gpu.example.com
  devices:
  - name: gpu-{i}
    count: 3
    attributes:
      model: A100
      index: {int: "{i}"}
      fast: true
      links: [a, b]
      version: {version: 1.2.3}
    capacity: {memory: 80Gi}
    taints: [{key: example.com/t, effect: NoSchedule}]
- driver: gpu.example.com
  name: rack
  allNodes: true
  counterSets: [{name: s, counters: {memory: 4Gi}}]
  devices:
  - {name: part, consumesCounters: [{counterSet: s, counters: {memory: 2Gi}}]}
deviceClasses:
- {name: gpu, selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""


def test_nodes_pools_and_classes() -> None:
    found = hardware(GOOD)

    described = dict(found.described_nodes())
    assert list(described) == ["hw-0", "hw-1"]
    assert described["hw-1"].labels == {"example.com/number": "1"}
    assert described["hw-1"].capacity == {"cpu": "64", "memory": "256Gi"}
    assert list(found.sources) == [
        PoolKey(DRIVER, "hw-0"),
        PoolKey(DRIVER, "hw-1"),
        PoolKey(DRIVER, "rack"),
    ]
    assert [device_class.metadata.name for device_class in found.classes] == ["gpu"]


def test_devices_by_their_numbers() -> None:
    (slice_,) = hardware(GOOD).slices(PoolKey(DRIVER, "hw-1"))

    assert slice_.node_name == "hw-1"
    assert slice_.devices is not None
    assert [device.name for device in slice_.devices] == ["gpu-0", "gpu-1", "gpu-2"]
    last = slice_.devices[2]
    attributes = last.attributes
    assert attributes["model"].string == "A100"
    assert attributes["index"].int_ == 2
    assert attributes["fast"].bool_ is True
    assert attributes["links"].strings == ("a", "b")
    assert attributes["version"].version == "1.2.3"
    assert str(last.capacity["memory"].value) == "80Gi"
    assert last.taints[0].key == "example.com/t"


def test_counters_have_slices_of_their_own() -> None:
    counters, devices = hardware(GOOD).slices(PoolKey(DRIVER, "rack"))

    assert (counters.all_nodes, counters.node_name, counters.devices) == (True, None, None)
    assert counters.shared_counters is not None
    assert str(counters.shared_counters[0].counters["memory"].value) == "4Gi"
    assert devices.shared_counters is None
    assert counters.pool == devices.pool
    assert counters.pool.resource_slice_count == 2


def test_the_number_of_nodes_can_be_chosen() -> None:
    assert len(hardware(GOOD, count=5).nodes) == 5
    assert list(hardware(GOOD, count=0).sources) == [PoolKey(DRIVER, "rack")]


def test_thousands_of_nodes_are_read_without_working_out_their_devices() -> None:
    found = hardware(GOOD, count=5000)

    assert len(found.sources) == 5001


def changed(*path: str | int, value: Any) -> Any:
    """GOOD with another value somewhere."""
    document = yaml.safe_load(GOOD)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return document


DEVICE = ("pools", 0, "devices", 0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(None, "a hardware description is a mapping", id="empty"),
        pytest.param([], "a hardware description is a mapping", id="list"),
        pytest.param(changed("nodez", value={}), "there is no field nodez; did you mean nodes?", id="unknown"),
        pytest.param(
            changed("nodes", "cuont", value=1), "nodes: there is no field cuont; did you mean count?", id="unknown-in"
        ),
        pytest.param(
            changed("nodes", "count", value="x"), "nodes.count: Expected int, got str", id="type"
        ),
        pytest.param(changed("nodes", "count", value=-1), "nodes.count: must be", id="negative"),
        pytest.param(
            changed("nodes", "name", value="same"),
            "nodes.name: duplicate node name same; use {node}",
            id="same-name",
        ),
        pytest.param(
            changed("nodes", "name", value="A_{node}"), "nodes.name: Invalid value", id="bad-name"
        ),
        pytest.param(
            changed("nodes", "labels", value={"a b": "c"}), "nodes.labels: Invalid", id="label"
        ),
        pytest.param(
            changed("nodes", "taints", value=[{"key": "a", "effect": "Never"}]),
            "nodes.taints[0].effect: Unsupported value",
            id="taint",
        ),
        pytest.param(
            changed("nodes", "capacity", value={"cpu": "lots"}), "nodes.capacity.cpu: 'lots'", id="cpu"
        ),
        pytest.param(
            changed("nodes", "labels", value={"a": "{i}"}), "nodes.labels: {i} is no", id="no-i"
        ),
        pytest.param(
            changed("pools", 0, value={"name": "x"}), "pools[0]: Object missing required field driver",
            id="no-driver",
        ),
        pytest.param(
            changed("pools", 0, "driver", value="no/driver"), "pools[0].driver: Invalid", id="driver"
        ),
        pytest.param(
            changed("pools", 0, "name", value="pool"), "pools[0].name: duplicate pool pool of",
            id="pool-name-of-all-nodes",
        ),
        pytest.param(
            changed("pools", 1, "perDeviceNodeSelection", value=True),
            "pools[1]: Invalid value",
            id="two-ways-to-say-which-nodes",
        ),
        pytest.param(
            changed("pools", 1, "nodeSelector", value={"terms": []}),
            "pools[1].nodeSelector.terms: unknown field; available: nodeSelectorTerms",
            id="selector",
        ),
        pytest.param(
            changed(*DEVICE, "count", value=2.5), "pools[0].devices[0].count: must be", id="count"
        ),
        pytest.param(
            changed(*DEVICE, "name", value="gpu"),
            "pools[0].devices[0].name: duplicate name gpu; use {i}",
            id="device-name-twice",
        ),
        pytest.param(
            changed(*DEVICE, "name", value="GPU-{i}"),
            "pools[0].devices[0].name: Invalid value: \"GPU-0\"",
            id="device-name",
        ),
        pytest.param(
            changed(*DEVICE, "nmae", value="x"),
            "pools[0].devices[0].nmae: unknown field; available: name,",
            id="device-field",
        ),
        pytest.param(
            changed(*DEVICE, "attributes", value={"a b": 1}), "pools[0].devices[0].attributes",
            id="attribute-name",
        ),
        pytest.param(
            changed(*DEVICE, "attributes", value={"a": {"int": "x"}}),
            "pools[0].devices[0].attributes",
            id="attribute-type",
        ),
        pytest.param(
            changed(*DEVICE, "capacity", value={"a": "much"}), "pools[0].devices[0].capacity", id="amount"
        ),
        pytest.param(
            changed(*DEVICE, "taints", value=[{"key": "a", "effect": "Maybe"}]),
            "pools[0].devices[0].taints[0].effect: Unsupported value",
            id="device-taint",
        ),
        pytest.param(
            changed("pools", 1, "devices", 0, "consumesCounters", 0, "counterSet", value="t"),
            "pools[1].devices[0].consumesCounters: part consumes counters of unknown counter set t",
            id="counter-set",
        ),
        pytest.param(
            changed("deviceClasses", 0, "selectors", 0, "cel", "expression", value="1 +"),
            "deviceClasses[0].selectors[0].cel.expression: Invalid value",
            id="expression",
        ),
        pytest.param(
            changed("deviceClasses", 0, "name", value=None), "deviceClasses[0].name: a class needs",
            id="class-name",
        ),
    ],
)  # fmt: skip
def test_errors_of_hardware_files(document: Any, message: str) -> None:
    with pytest.raises(HardwareError) as error:
        read_hardware(document, "hw.yaml", "hw")

    text = str(error.value)
    assert text.startswith(f"hw.yaml: {message}")
    assert "\n" not in text


def test_a_device_far_behind_is_found() -> None:
    document = changed(*DEVICE, "count", value=200)
    entry = document["pools"][0]["devices"][0]
    document["pools"][0]["devices"] = [
        {"name": "a-{i}", "count": 150},
        {**entry, "name": "b-{i}", "count": 10, "attributes": {"x": {"version": "{i}.0.{i//9}x"}}},
    ]

    with pytest.raises(HardwareError, match=r"pools\[0\]\.devices\[1\]\.attributes.*\(in b-0\)"):
        read_hardware(document, "hw.yaml", "hw")


# --- groups of nodes, and pools in slices ---

GROUPS = """
nodes:
- {names: [big-a, big-b], labels: {size: big}, capacity: {cpu: 64}}
- {count: 2, name: "small-{node}"}
pools:
- {driver: gpu.example.com, nodeNames: [big-b], devices: [{name: gpu}]}
- {driver: nic.example.com, devices: [{name: nic}]}
- driver: gpu.example.com
  name: rack
  slices:
  - {nodeName: big-a, devices: [{name: x, count: 1}]}
  - {allNodes: true, counterSets: [{name: s, counters: {c: 1}}]}
"""


def test_groups_of_nodes() -> None:
    found = hardware(GROUPS)

    described = dict(found.described_nodes())
    assert list(described) == ["big-a", "big-b", "small-2", "small-3"]
    assert described["big-b"].labels == {"size": "big"}
    assert described["small-3"].capacity == {}
    pools = [key.pool for key in found.sources if key.driver == DRIVER]
    assert pools == ["big-b", "rack"]
    assert len(found.sources) == 2 + 4


def test_pools_in_slices() -> None:
    """They are published as they are written."""
    first, second = hardware(GROUPS).slices(PoolKey(DRIVER, "rack"))

    assert (first.node_name, second.node_name, second.all_nodes) == ("big-a", None, True)
    assert (first.shared_counters, second.devices) == (None, None)
    assert first.pool.resource_slice_count == second.pool.resource_slice_count == 2


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        pytest.param(("[big-b]", "[bigg-b]"), "pools[0].nodeNames[0]", "there is no node bigg-b; did you mean big-b", id="node"),
        pytest.param(("small-{node}", "big-a"), "nodes[1].name", "duplicate node name big-a", id="duplicate"),
        pytest.param(("cpu: 64", "cpu: x"), "nodes[0].capacity.cpu", "'x': ", id="capacity"),
        pytest.param(("size: big", "size: '!'"), "nodes[0].labels", "", id="label"),
        pytest.param(("name: rack", "name: rack\n  devices: [{name: y}]"), "pools[2].slices", "not together with", id="both"),
        pytest.param(("driver: nic.example.com,", "driver: nic.example.com, allNodes: true, nodeNames: [big-a],"), "pools[1].nodeNames", "not together with", id="selection"),
        pytest.param(("name: x,", "name: X_,"), "pools[2].slices[0].devices[0].name", "(in X_)", id="device"),
        pytest.param(("c: 1}", "c: {v: 1}}"), "pools[2].slices[1].counterSets[0]", "", id="counter"),
        pytest.param(("count: 1}", "cuont: 1}"), "pools[2].slices[0].devices[0].cuont", "unknown field", id="unknown-of-device"),
        pytest.param(("allNodes: true, c", "alNodes: true, c"), "pools[2].slices[1]", "did you mean allNodes?", id="unknown-of-slice"),
    ],
)  # fmt: skip
def test_groups_and_slices_that_cannot_be(
    change: tuple[str, str], field: str, problem: str
) -> None:
    with pytest.raises(HardwareError) as error:
        hardware(GROUPS.replace(*change))

    assert error.value.field.startswith(field), str(error.value)
    assert problem in error.value.problem


def test_an_example_claim() -> None:
    text = "exampleClaim: {devices: {requests: [{name: r, exactly: {deviceClassName: %s}}]}}"
    found = hardware(text % "gpu").example_claim

    assert found is not None
    exactly = found.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)
    with pytest.raises(HardwareError, match=r"exampleClaim\.devices\.requests\[0\]\.exactly\.dev"):
        hardware(text % "A_")


# --- files and profiles ---


@pytest.mark.parametrize("name", profiles())
def test_profiles_are_good(name: str) -> None:
    found = load_hardware(f"{name}=3")

    assert len(found.nodes) == 3
    assert all(found.slices(key) for key in found.sources)
    assert found.classes


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text(GOOD)

    assert load_hardware(str(path)).name == "rack"
    assert len(load_hardware(f"{path}=7").nodes) == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file or profile; available profiles: composable-fabric, cpu-"),
        ("\na: [", "line 2: "),
        ("a: \t1", "line 1: "),
        ("\x00", "unacceptable character"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "rack.yaml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(HardwareError) as error:
        load_hardware(str(path))

    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
