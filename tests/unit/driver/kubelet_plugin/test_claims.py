"""What a driver sees of an allocation, its paths, and its CDI files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.api.claims import AllocationResult
from allot.driver.kubelet_plugin.cdi_files import CdiFiles, is_safe_uid
from allot.driver.kubelet_plugin.claims import ContainerEdits, allocated_devices
from allot.driver.kubelet_plugin.paths import MAX_SOCKET_PATH, SocketPathError, plugin_paths

DRIVER = "a.example.com"


def allocation(results: list[dict[str, Any]], config: Any = ()) -> AllocationResult:
    document = {"devices": {"results": results, "config": list(config)}}
    return msgspec.json.decode(msgspec.json.encode(document), type=AllocationResult)


def configured(source: str, value: str, driver: str = DRIVER, requests: Any = ()) -> dict[str, Any]:
    opaque = {"driver": driver, "parameters": {"value": value}}
    return {"source": source, "requests": list(requests), "opaque": opaque}


def test_only_own_devices_with_their_parameters() -> None:
    found = allocated_devices(
        allocation(
            [
                {"request": "gpu/large", "driver": DRIVER, "pool": "p", "device": "d"},
                {"request": "nic", "driver": "b.example.com", "pool": "p", "device": "d"},
                {"request": "other", "driver": DRIVER, "pool": "p", "device": "e"},
            ],
            [
                configured("FromClaim", "claim"),
                configured("FromClass", "class"),
                configured("FromClaim", "request", requests=["gpu"]),
                configured("FromClaim", "alternative", requests=["gpu/large"]),
                configured("FromClaim", "another alternative", requests=["gpu/small"]),
                configured("FromClaim", "another driver", "b.example.com"),
            ],
        ),
        DRIVER,
    )

    assert [(each.base_request, each.device) for each in found] == [("gpu", "d"), ("other", "e")]
    assert [[p["value"] for p in each.parameters] for each in found] == [
        ["class", "claim", "request", "alternative"],
        ["class", "claim"],
    ]


def test_edits_become_a_specification(tmp_path: Path) -> None:
    files = CdiFiles(tmp_path, DRIVER, "device")
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
    (device,) = allocated_devices(allocation([result]), DRIVER)
    edits = ContainerEdits({"A": "1"}, ("/dev/x",), {"/host": "/inside"}, read_only=True)
    prepared = (device.prepared(edits, ("other.com/gpu=all",)), device.prepared())

    files.write("uid", prepared)

    assert files.device_ids("uid", prepared) == [
        ("other.com/gpu=all", "a.example.com/device=uid-0"),
        (),
    ]
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text()) == {
        "cdiVersion": "0.6.0",
        "kind": "a.example.com/device",
        "devices": [
            {
                "name": "uid-0",
                "containerEdits": {
                    "env": ["A=1"],
                    "deviceNodes": [{"path": "/dev/x"}],
                    "mounts": [
                        {"hostPath": "/host", "containerPath": "/inside", "options": ["bind", "ro"]}
                    ],
                },
            }
        ],
    }
    files.remove("uid")
    files.remove("uid")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("uid", ["", "../x", "a/b", ".", "a" * 64, "-a", "a\n"])
def test_uids_that_cannot_be_file_names(uid: str) -> None:
    assert not is_safe_uid(uid)


def test_paths_of_one_instance() -> None:
    paths = plugin_paths(DRIVER)

    assert str(paths.registration) == "/var/lib/kubelet/plugins_registry/a.example.com-reg.sock"
    assert str(paths.endpoint) == "/var/lib/kubelet/plugins/a.example.com/dra.sock"


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        (DRIVER, "a.example.com-9b6f4f5e-6a0b-4e1e-9d2c-0123456789ab-reg.sock"),
        ("d" * 40 + ".com", "d" * 40 + ".com-HSqRqQ1i2T8-reg.sock"),
    ],
    ids=["it fits", "a digest of the UID"],
)
def test_the_registration_of_one_of_two_instances_fits(driver: str, name: str) -> None:
    paths = plugin_paths(driver, instance="9b6f4f5e-6a0b-4e1e-9d2c-0123456789ab")

    assert len(str(paths.registration)) <= MAX_SOCKET_PATH
    assert paths.registration.name.startswith(name[:45])
    assert paths.registration.name.endswith("-reg.sock")


def test_a_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(SocketPathError, match="use shorter directories"):
        plugin_paths(DRIVER, Path("/" + "x" * 100))
