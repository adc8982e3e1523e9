"""The included hardware profiles, and capturing what they render."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

import allot
from allot.api.base import replace
from allot.api.core import Node
from allot.api.slices import ResourceSlice
from allot.cli.hardware_output import documents_of, example_documents
from allot.client import resources
from allot.driver.capture import capture_hardware
from allot.driver.errors import HardwareError
from allot.driver.hardware import Hardware, PoolKey
from allot.driver.loading import load_hardware, profiles
from allot.driver.reading import read_hardware
from allot.questions.hardware_objects import hardware_objects

OWN = {"fabric", "gpu-server", "mig-server", "shared-nic"}
"""Profiles of drivers that do not exist."""
EXAMPLES = {
    "composable-fabric": {"gpus": ["nvidia-l40s-gpu0", "nvidia-l40s-gpu1"]},
    "cpu-cores": {"cpus": ["cpudev000", "cpudev001", "cpudev002", "cpudev003"]},
    "cpu-numa": {"cpus": ["cpudevnuma000"], "nic": ["pci-0000-3b-00-0"]},
    "dranet-server": {"nic": ["pci-0000-3b-00-0"]},
    "fabric": {"gpu": ["gpu-0"]},
    "gb200-rack": {"gpus": ["gpu-0", "gpu-1", "gpu-2", "gpu-3"], "channel": ["channel-0"]},
    "gpu-server": {"gpu": ["gpu-0"], "nic": ["rdma-0"]},
    "h100-degraded": {"gpus": ["gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-6", "gpu-7"]},
    "h100-mig": {"large": ["gpu-0-mig-3g40gb-9-0"], "small": ["gpu-0-mig-1g10gb-19-4"]},
    "h100-passthrough": {"gpus": ["gpu-vfio-0", "gpu-vfio-1", "gpu-vfio-2", "gpu-vfio-3"]},
    "h100-server": {"gpu": ["gpu-0"], "nic": ["pci-0000-18-00-0"]},
    "mig-server": {"gpu/half": ["gpu-0-half-0"]},
    "shared-nic": {"nic": ["eth1"]},
    "sriov-server": {"vfs": ["0000-3b-00-2", "0000-af-00-2"]},
    "tpu-v6e-host": {"tpus": ["0", "1", "2", "3", "4", "5", "6", "7"]},
}


@pytest.mark.parametrize("rules", ["seeds", "v1.38"])
@pytest.mark.parametrize("name", profiles())
def test_the_example_is_allocated(name: str, rules: str) -> None:
    hardware = load_hardware(f"{name}=1")
    documents = [*documents_of(hardware), *example_documents(hardware)]
    cluster = allot.loads(yaml.safe_dump_all(documents), rules=rules)

    allocation = cluster.nodes[0].allocate("example")

    assert allocation, str(allocation)
    found: dict[str, list[str]] = {}
    for result in allocation.devices:
        found.setdefault(result.request, []).append(result.name)
    assert found == EXAMPLES[name]


@pytest.mark.parametrize("name", profiles())
def test_profiles_say_whose_shapes_they_have(name: str) -> None:
    hardware = load_hardware(name)

    assert hardware.description
    assert bool(hardware.based_on) == (name not in OWN)
    assert all("github.com/" in each for each in hardware.based_on)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h100-servr=4", "h100-servr: no such file or profile; did you mean h100-server?"),
        ("/x/gb200-rak", "/x/gb200-rak: no such file or profile; did you mean gb200-rack?"),
        ("gb200", "gb200: no such file or profile; available profiles: composable-fabric, cpu-"),
    ],
)
def test_a_name_that_does_not_exist(name: str, message: str) -> None:
    with pytest.raises(HardwareError) as error:
        load_hardware(name)

    assert str(error.value).startswith(message)


def test_partitions_share_what_a_gpu_has() -> None:
    """Two partitions of four memory slices each leave nothing, although SMs are left."""
    hardware = load_hardware("h100-mig")
    (key,) = hardware.sources
    devices = {
        device.name: device for each in hardware.slices(key) for device in each.devices or ()
    }
    halves = [devices["gpu-7-mig-3g40gb-9-0"], devices["gpu-7-mig-3g40gb-9-4"]]

    slices = [
        name
        for half in halves
        for name in half.consumes_counters[0].counters
        if name.startswith("memory-slice-")
    ]

    assert sorted(slices) == [f"memory-slice-{number}" for number in range(8)]
    assert [str(half.capacity["multiprocessors"].value) for half in halves] == ["60", "60"]
    assert len(devices) == 8 * (1 + 7 + 7 + 4 + 3 + 2 + 1 + 1)


FORMS = {
    "resource.kubernetes.io/pcieRoot": r"pci[0-9a-f]{4}:[0-9a-f]{2}",
    "resource.kubernetes.io/pciBusID": r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]",
    "pciAddress": r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]",
    "uuid": r"(GPU|MIG|tpu)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "parentUUID": r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "mac": r"([0-9a-f]{2}:){5}[0-9a-f]{2}",
    "ipv4": r"(\d{1,3}\.){3}\d{1,3}/\d{1,2}",
}
"""Of values, by the name of the attribute with or without its domain."""


@pytest.mark.parametrize("name", sorted(set(profiles()) - OWN))
def test_values_have_the_form_of_real_ones(name: str) -> None:
    hardware = load_hardware(name)
    unique: set[str] = set()
    for key in hardware.sources:
        for device in [each for part in hardware.slices(key) for each in part.devices or ()]:
            for attribute, value in device.attributes.items():
                short = attribute.rpartition("/")[2]
                form = FORMS.get(attribute) or FORMS.get(short)
                found = value.strings or ((value.string,) if value.string is not None else ())
                if form is not None:
                    assert found, (device.name, attribute)
                    assert all(re.fullmatch(form, each) for each in found), (attribute, found)
                if short in ("uuid", "mac"):
                    assert unique.isdisjoint(found), (attribute, found)
                    unique.update(found)


def test_partitions_have_the_counters_of_their_gpu() -> None:
    """As the driver derives them: a counter for each capacity, in kebab case, and one for each memory slice."""
    hardware = load_hardware("h100-mig")
    (key,) = hardware.sources
    slices = hardware.slices(key)
    counters = {
        each.name: set(each.counters) for part in slices for each in part.shared_counters or ()
    }
    memory_slices = {f"memory-slice-{number}" for number in range(8)}
    for device in [each for part in slices for each in part.devices or ()]:
        (consumption,) = device.consumes_counters
        derived = {
            re.sub("([a-z])([A-Z])", r"\1-\2", capacity).lower(): amount.value
            for capacity, amount in device.capacity.items()
        }
        consumed = {name: each.value for name, each in consumption.counters.items()}
        assert counters[consumption.counter_set] == set(derived) | memory_slices
        assert {name: consumed[name] for name in derived} == derived
        placed = sorted(set(consumed) & memory_slices)
        if "-mig-" in device.name:
            start = int(device.name.rpartition("-")[2])
            assert placed == [f"memory-slice-{start + index}" for index in range(len(placed))]


# --- capture ---


def rendered(hardware: Hardware) -> dict[PoolKey, Any]:
    return {key: hardware.slices(key) for key in hardware.sources}


def captured(hardware: Hardware) -> Hardware:
    found = list(hardware_objects(hardware))
    slices: list[ResourceSlice] = [obj for kind, obj in found if kind is resources.RESOURCE_SLICES]
    nodes: list[Node] = [obj for kind, obj in found if kind is resources.NODES]
    document = capture_hardware(slices, nodes, hardware.classes, name=hardware.name).document
    return read_hardware(yaml.safe_load(yaml.safe_dump(document)), "captured", "captured")


@pytest.mark.parametrize("name", profiles())
def test_what_is_captured_renders_the_same(name: str) -> None:
    hardware = load_hardware(name)

    again = captured(hardware)

    assert rendered(again) == rendered(hardware)
    assert sorted(again.classes, key=str) == sorted(hardware.classes, key=str)
    assert {node.name for node in again.nodes} == {node.name for node in hardware.nodes}


def slices_of(hardware: Hardware) -> list[ResourceSlice]:
    return [obj for kind, obj in hardware_objects(hardware) if kind is resources.RESOURCE_SLICES]


def test_nodes_with_equal_pools_are_written_once() -> None:
    """And their names as a pattern, so that the number of nodes can be changed."""
    document = capture_hardware(slices_of(load_hardware("gpu-server=3"))).document

    assert document["nodes"] == {"count": 3, "name": "gpu-server-{node}"}
    assert [(pool["driver"], pool.get("name")) for pool in document["pools"]] == [
        ("gpu.example.com", None),
        ("nic.example.com", "{nodeName}-rdma"),
    ]
    assert len(read_hardware(document, "f", "f", 5).sources) == 10


def test_a_profile_of_one_node_can_be_multiplied() -> None:
    document = capture_hardware(slices_of(load_hardware("h100-server=1"))).document

    found = read_hardware(document, "f", "f", 2)

    assert [node.name for node in found.nodes] == ["h100-server-0-0", "h100-server-0-1"]
    assert len(found.sources) == 4


def test_nodes_that_differ() -> None:
    both = [*slices_of(load_hardware("gpu-server=1")), *slices_of(load_hardware("shared-nic"))]
    nodes = [
        Node({"metadata": {"name": "gpu-server-0", "labels": {"a": "1", "allot.dev/x": "y"}}}),
        Node({"metadata": {"name": "plain"}, "status": {"capacity": {"cpu": "4"}}}),
    ]

    document = capture_hardware(both, nodes).document

    assert document["nodes"] == [
        {"names": ["gpu-server-0"], "labels": {"a": "1"}},
        {"names": ["plain"], "capacity": {"cpu": "4"}},
        {"names": ["shared-nic-0"]},
    ]
    assert [pool["nodeNames"] for pool in document["pools"]] == [
        ["gpu-server-0"],
        ["gpu-server-0"],
        ["shared-nic-0"],
    ]
    with pytest.raises(HardwareError, match="=N needs one group of nodes"):
        read_hardware(document, "f", "f", 5)


def test_an_incomplete_pool_is_noted() -> None:
    first, *_ = slices_of(load_hardware("h100-mig"))
    old = replace(first, spec=replace(first.spec, pool=replace(first.spec.pool, generation=0)))

    found = capture_hardware([first, old])

    assert found.notes == (
        "pool h100-mig-0 of gpu.nvidia.com is incomplete: 1 of 5 slices; it is described as if these were all",
    )
