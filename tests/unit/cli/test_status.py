"""`allot status`: the figures of pools, in files or in a cluster."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from allot.cli.availability import PoolRow, Wanted, availability
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.main import allot
from allot.cli.status import COLUMNS, RESOURCES, objects_in, table_blocks
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.snapshot_lists import take_snapshot
from allot.features import DEFAULTS
from allot.testing.manifests import a_class_manifest, a_dra_manifest, a_slice_manifest
from allot.testing.servers import TOKEN, LocalServer

GROUP = "resource.k8s.io/v1"


def a_pool(name: str, driver: str, *devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The first slice of a pool of one slice, or of more."""
    pool = {"resourceSliceCount": spec.pop("slices", 1)}
    return a_slice_manifest(*devices, name=name, node=name, driver=driver, pool=pool, **spec)


TAINT = {"key": "k", "effect": "NoSchedule"}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "a"}
SHARED = {"capacity": {"speed": {"value": "100G"}}, "allowMultipleAllocations": True}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
CLUSTER = [
    a_pool(
        "node-1", "gpu.example.com", {"name": "a"}, {"name": "b"}, {"name": "c", "taints": [TAINT]}
    ),
    a_pool("node-2", "gpu.example.com", {"name": "a"}),
    a_pool("node-3", "gpu.example.com", {"name": "a"}, slices=2, nodeName="node-3"),
    a_pool("fabric", "nic.example.com", {"name": "p"} | SHARED, allNodes=True),
    a_class_manifest("gpu", "device.driver == 'gpu.example.com'"),
    a_class_manifest("nic", "device.driver == 'nic.example.com'"),
    a_dra_manifest(
        "ResourceClaim",
        "c",
        {"devices": {"requests": [REQUEST]}},
        status={"allocation": {"devices": {"results": [RESULT]}}},
    ),
    a_dra_manifest("DeviceTaintRule", "r", {"deviceSelector": {"pool": "node-2"}, "taint": TAINT}),
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
]
POOLS = """\
DRIVER           POOL    NODE    TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE  DETAILS
gpu.example.com  node-1  node-1      3          1          1            1
gpu.example.com  node-2  node-2      1          0          0            1
gpu.example.com  node-3  node-3      -          -          -            -  PoolIncomplete: pool\
 gpu.example.com/node-3 is incomplete: observed 1/2 slices at generation 1
nic.example.com  fabric  -           1          0          1            0  speed 100G/100G
total                                5          1          2            2
"""
CLASSES = """\
CLASS  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE
gpu        4          1          1            2
nic        1          0          1            0
"""


def status(*arguments: str, objects: list[dict[str, Any]] | None = None) -> str:
    text = yaml.safe_dump_all(CLUSTER if objects is None else objects)
    command = ["status", "-f", "-", *arguments]
    result = CliRunner().invoke(allot, command, input=text, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == EXIT_OK
    return result.stdout


def test_pools_and_classes() -> None:
    assert status() == f"{POOLS}\n{CLASSES}"


def test_one_view_at_a_time() -> None:
    assert status("--by", "class") == CLASSES
    assert status("--by", "driver") == (
        "DRIVER           POOLS  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE  DETAILS\n"
        "gpu.example.com      3      4          1          1            2  1 with errors\n"
        "nic.example.com      1      1          0          1            0\n"
        "total                4      5          1          2            2  1 with errors\n"
    )
    assert status("--by", "node") == (
        "NODE    TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE\n"
        "-           1          0          1            0\n"
        "node-1      3          1          1            1\n"
        "node-2      1          0          0            1\n"
        "total       5          1          2            2\n"
    )


@pytest.mark.parametrize(
    ("arguments", "pools"),
    [
        (["--driver", "nic.example.com"], ["fabric"]),
        (["--pool", "node-2"], ["node-2"]),
        (["--node", "node-1"], ["node-1"]),
        (["--driver", "none.example.com"], []),
        (["--class", "nic"], ["fabric"]),
        (["--class", "gpu", "--node", "node-1"], ["node-1"]),
    ],
)
def test_what_is_wanted(arguments: list[str], pools: list[str]) -> None:
    found = json.loads(status(*arguments, "-o", "json"))

    assert [pool["poolName"] for pool in found["pools"]] == pools


def test_classes_that_select_nothing_of_what_is_wanted_are_left_out() -> None:
    assert status("--by", "class", "--driver", "nic.example.com") == (
        "CLASS  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE\n"
        "nic        1          0          1            0\n"
    )


def test_a_class_is_counted_in_every_view() -> None:
    first = a_class_manifest("first", "device.attributes['gpu.example.com'].number == 1")
    devices = [
        {"name": f"d-{number}", "attributes": {"number": {"int": number}}} for number in range(3)
    ]
    objects = [a_pool(name, "gpu.example.com", *devices) for name in ("n1", "n2")]

    found = json.loads(status("--class", "first", "-o", "json", objects=[*objects, first]))

    assert found["total"]["totalDevices"] == 2
    assert [pool["totalDevices"] for pool in found["pools"]] == [1, 1]
    assert [node["availableDevices"] for node in found["nodes"]] == [1, 1]
    assert [row["name"] for row in found["classes"]] == ["first"]


def test_a_class_that_does_not_exist() -> None:
    with pytest.raises(CommandError, match=r"no DeviceClass gppu; did you mean gpu\?"):
        status("--class", "gppu")


def test_a_driver_that_does_not_exist() -> None:
    text = yaml.safe_dump_all(CLUSTER)
    command = ["status", "-f", "-", "--driver", "gpu.exmaple.com"]

    result = CliRunner().invoke(allot, command, input=text, standalone_mode=False)

    assert result.stderr.startswith(
        "warning: no ResourceSlice is of driver gpu.exmaple.com; did you mean gpu.example.com?"
    )


def gpus_with_slices(count: int) -> list[dict[str, Any]]:
    """GPUs that can be had whole, or in seven slices."""

    def uses(gpu: int, memory: str) -> dict[str, Any]:
        counters = {"memory": {"value": memory}}
        return {"consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": counters}]}

    sets = [{"name": f"gpu-{n}", "counters": {"memory": {"value": "7Gi"}}} for n in range(count)]
    whole = [
        {"name": f"gpu-{n}", "attributes": {"size": {"int": 7}}} | uses(n, "7Gi")
        for n in range(count)
    ]
    parts = [
        {"name": f"gpu-{n}-{part}", "attributes": {"size": {"int": 1}}} | uses(n, "1Gi")
        for n in range(count)
        for part in range(7)
    ]
    devices = a_pool("d", "gpu.example.com", *whole, *parts, nodeName="n1", slices=2)
    counters = a_pool("c", "gpu.example.com", nodeName="n1", slices=2)
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = sets
    for each in (devices, counters):
        each["spec"]["pool"]["name"] = "n1"
    whole_class = a_class_manifest("whole", "device.attributes['gpu.example.com'].size == 7")
    part_class = a_class_manifest("part", "device.attributes['gpu.example.com'].size == 1")
    return [devices, counters, whole_class, part_class]


def a_claim_of(driver: str, pool: str, device: str) -> dict[str, Any]:
    result = {"request": "r", "driver": driver, "pool": pool, "device": device}
    return a_dra_manifest(
        "ResourceClaim",
        device,
        {"devices": {"requests": [REQUEST]}},
        status={"allocation": {"devices": {"results": [result]}}},
    )


def test_partitions_are_available_as_far_as_they_can_be_had_at_once() -> None:
    objects = gpus_with_slices(8)

    assert status(objects=objects) == (
        "DRIVER           POOL  NODE  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE  DETAILS\n"
        "gpu.example.com  n1    n1       64          0         56            0  64 free, 56 at once\n"
        "\n"
        "CLASS  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE\n"
        "part      56          0         56            0\n"
        "whole      8          0          8            0\n"
    )
    held = [
        a_claim_of("gpu.example.com", "n1", "gpu-0"),
        a_claim_of("gpu.example.com", "n1", "gpu-1-3"),
    ]
    found = json.loads(status("-o", "json", objects=[*objects, *held]))
    (pool,) = found["pools"]
    assert (pool["availableDevices"], pool["freeDevices"]) == (48, 62)
    available = {row["name"]: row["availableDevices"] for row in found["classes"]}
    assert available == {"part": 48, "whole": 6}


def test_a_shareable_device_that_is_held_as_a_whole_has_no_capacity_left() -> None:
    objects = [
        a_pool("fabric", "nic.example.com", {"name": "p"} | SHARED, allNodes=True),
        a_claim_of("nic.example.com", "fabric", "p"),
    ]

    assert "speed 0/100G" in status(objects=objects)


WIDE = """\
DRIVER           POOL    NODE  TOTAL  ALLOCATED  AVAILABLE  UNAVAILABLE  DETAILS
gpu.example.com  node-1  -         2          0          2            0  [odd]
gpu.example.com  node-2  -         2          0          2            0
nic.example.com  fabric  -         2          0          2            0
total                              6          0          6            0
"""
DETAILS_BELOW = """\
DRIVER           POOL    NODE  TOTAL  ALLOC  AVAIL  UNAVAIL
gpu.example.com  node-1  -         2      0      2        0
gpu.example.com  node-2  -         2      0      2        0
nic.example.com  fabric  -         2      0      2        0
total                              6      0      6        0
node-1: [odd]
"""
SMALL = """\
gpu.example.com
POOL    NODE  TOTAL  ALLOC  AVAIL  UNAVAIL
node-1  -         2      0      2        0
node-2  -         2      0      2        0
node-1: [odd]
nic.example.com
POOL    NODE  TOTAL  ALLOC  AVAIL  UNAVAIL
fabric  -         2      0      2        0
total
TOTAL  ALLOC  AVAIL  UNAVAIL
    6      0      6        0
"""


def a_pool_row(driver: str, name: str, devices: int, error: str | None = None) -> PoolRow:
    return PoolRow(
        driver=driver,
        pool_name=name,
        total_devices=devices,
        allocated_devices=0,
        available_devices=devices,
        unavailable_devices=0,
        validation_error=error,
    )


@pytest.mark.parametrize(("width", "shown"), [(120, WIDE), (60, DETAILS_BELOW), (44, SMALL)])
def test_tables_fit_the_terminal(width: int, shown: str) -> None:
    pools = (
        a_pool_row("gpu.example.com", "node-1", 2, "[odd]"),
        a_pool_row("gpu.example.com", "node-2", 2),
        a_pool_row("nic.example.com", "fabric", 2),
        a_pool_row("total", "", 6),
    )
    console = Console(width=width, file=io.StringIO())

    with console.capture() as capture:
        for block in table_blocks(console, COLUMNS["pool"], pools):
            console.print(block)

    assert [line.rstrip() for line in capture.get().splitlines()] == shown.splitlines()


def test_for_machines() -> None:
    as_json = json.loads(status("-o", "json"))

    assert as_json == yaml.safe_load(status("-o", "yaml"))
    assert list(as_json) == ["rules", "total", "drivers", "pools", "nodes", "classes"]
    assert as_json["classes"][1] == {
        "name": "nic",
        "totalDevices": 1,
        "allocatedDevices": 0,
        "availableDevices": 1,
        "unavailableDevices": 0,
    }
    shares = as_json["pools"][3]["shareableSummary"]
    assert shares["capacity"] == [
        {"name": "speed", "total": "100G", "consumed": "0", "available": "100G"}
    ]


def test_devices_of_one_pool_on_several_nodes() -> None:
    mixed = a_pool(
        "rack",
        "gpu.example.com",
        {"name": "a", "nodeName": "node-1"},
        {"name": "b", "nodeName": "node-2", "taints": [TAINT]},
        perDeviceNodeSelection=True,
    )

    found = json.loads(status("--by", "node", "-o", "json", objects=[mixed]))

    assert [(row["name"], row["availableDevices"]) for row in found["nodes"]] == [
        ("node-1", 1),
        ("node-2", 0),
    ]


def test_a_class_that_fails_on_a_device_says_so() -> None:
    broken = a_class_manifest("odd", "device.attributes['gpu.example.com'].model == 'x'")

    (row,) = json.loads(status("-o", "json", objects=[*CLUSTER[:2], broken]))["classes"]

    assert row["totalDevices"] == 0
    assert "no such key: model" in row["error"]


def test_an_object_that_is_there_twice_counts_once() -> None:
    assert status(objects=CLUSTER + CLUSTER) == status()


def test_taint_rules_have_a_gate() -> None:
    shown = status(
        "--pool", "node-2", "--by", "node", "--feature-gates", "DRADeviceTaintRules=false"
    )

    assert shown.splitlines()[1].split() == ["node-2", "1", "0", "1", "0"]


@pytest.mark.parametrize(
    ("objects", "arguments", "message"),
    [
        (CLUSTER[4:], [], "no ResourceSlice in these files"),
        (
            [{"apiVersion": GROUP, "kind": "ResourceSlice", "spec": 7}],
            [],
            "<stdin>:1: ResourceSlice/",
        ),
        (CLUSTER, ["--context", "x"], "files or a cluster, not both"),
        (CLUSTER, ["-f", "/nowhere.yaml"], "/nowhere.yaml: No such file"),
    ],
)
def test_mistakes(objects: list[dict[str, Any]], arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        status(*arguments, objects=objects)


def test_there_must_be_a_cluster(tmp_path: Path) -> None:
    command = ["status", "--kubeconfig", str(tmp_path / "none")]
    result = CliRunner().invoke(allot, command, standalone_mode=False)

    assert isinstance(result.exception, CommandError)
    assert "no kubeconfig at" in str(result.exception)


def test_the_same_from_a_cluster() -> None:
    async def from_server() -> dict[str, tuple[int | None, int | None]]:
        async with LocalServer() as server:
            for body in (CLUSTER[0], CLUSTER[4]):
                plural = {"ResourceSlice": "resourceslices", "DeviceClass": "deviceclasses"}
                await server.post(f"/apis/{GROUP}/{plural[body['kind']]}", body)
            client = Client(InProcessTransport(server.server.app, TOKEN))
            snapshot = await take_snapshot(client, RESOURCES)
            found = availability(objects_in(snapshot), Wanted(), DEFAULTS)
            rows = (*found.drivers, *found.nodes, *found.classes)
            return {row.name: (row.total_devices, row.available_devices) for row in rows}

    assert asyncio.run(from_server()) == {
        "gpu.example.com": (3, 2),
        "node-1": (3, 2),
        "gpu": (3, 2),
    }


@pytest.mark.parametrize(
    ("conditions", "details"),
    [
        pytest.param({}, "1 being attached", id="nothing-reported"),
        pytest.param({"Attached": "False"}, "1 being attached", id="not-yet"),
        pytest.param({"Attached": "True"}, "", id="attached"),
        pytest.param({"Broken": "True"}, "", id="failed"),
    ],
)
def test_devices_that_are_being_attached(conditions: dict[str, str], details: str) -> None:
    device = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    identity = {name: RESULT[name] for name in ("driver", "pool", "device")}
    reported = [{"type": name, "status": value} for name, value in conditions.items()]
    held: dict[str, Any] = {"allocation": {"devices": {"results": [RESULT | device]}}}
    held["devices"] = [identity | {"conditions": reported}]
    objects = [
        a_pool("node-1", "gpu.example.com", {"name": "a"} | device, {"name": "b"}),
        a_dra_manifest("ResourceClaim", "c", {"devices": {"requests": [REQUEST]}}, status=held),
    ]

    output = status("--by", "pool", objects=objects)

    assert output.splitlines()[1].split()[:7] == [
        "gpu.example.com",
        "node-1",
        "node-1",
        "2",
        "1",
        "1",
        "0",
    ]
    assert output.splitlines()[1].endswith(details or "0")
