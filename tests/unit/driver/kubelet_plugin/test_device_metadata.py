"""Metadata files of prepared claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allot.api.slices import Device, DeviceAttribute
from allot.driver.kubelet_plugin.claims import AllocatedDevice
from allot.driver.kubelet_plugin.device_metadata import (
    DeviceMetadataError,
    DeviceMetadataFiles,
    UnknownMetadataVersionError,
)
from allot.driver.kubelet_plugin.network_data import NetworkData
from allot.testing.builders import a_claim, a_device

DRIVER = "gpu.example.com"
FIRST, SECOND = AllocatedDevice("r", "n", "gpu-0"), AllocatedDevice("s/large", "n", "gpu-1")


def published() -> dict[tuple[str, str], Device]:
    return {("n", "gpu-0"): a_device("gpu-0", {"model": "A100"})}


def files(directory: Path, *versions: str) -> DeviceMetadataFiles:
    return DeviceMetadataFiles(directory, DRIVER, versions, published)


def read(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_a_file_for_each_request(tmp_path: Path) -> None:
    claim = a_claim(name="c", uid="u")

    edits = files(tmp_path, "v1beta1").write(claim, [FIRST.prepared(), SECOND.prepared()])

    assert list(edits) == ["r", "s"]
    ((host, inside),) = edits["s"].mounts.items()
    assert edits["s"].read_only
    assert inside == (
        f"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/s/{DRIVER}-metadata.json"
    )
    (content,) = read(host)
    assert content["requests"] == [
        {"name": "s/large", "devices": [{"driver": DRIVER, "pool": "n", "name": "gpu-1"}]}
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, {"model": {"string": "A100"}}, id="published"),
        pytest.param({"serial": DeviceAttribute(int_=7)}, {"serial": {"int": 7}}, id="own"),
        pytest.param({}, None, id="none"),
    ],
)
def test_attributes(
    given: dict[str, DeviceAttribute] | None, expected: object, tmp_path: Path
) -> None:
    edits = files(tmp_path, "v1alpha1").write(a_claim(uid="u"), [FIRST.prepared(attributes=given)])

    (host,) = edits["r"].mounts
    (content,) = read(host)
    requests = content["requests"]
    assert isinstance(requests, list)
    assert requests[0]["devices"][0].get("attributes") == expected


def test_files_are_removed_with_the_claim(tmp_path: Path) -> None:
    metadata = files(tmp_path, "v1alpha1", "v1beta1")
    assert not metadata.exist("u", ["r"])
    metadata.write(a_claim(uid="u"), [FIRST.prepared()])
    assert metadata.exist("u", ["r"])

    metadata.remove("u")
    metadata.remove("u")

    assert not metadata.exist("u", ["r"])


def test_an_update_raises_the_generation_in_the_file_that_is_mounted(tmp_path: Path) -> None:
    claim = a_claim(
        name="c", uid="u", annotations={"resource.kubernetes.io/pod-claim-name": "entry"}
    )
    metadata = files(tmp_path, "v1alpha1", "v1beta1")
    edits = metadata.write(claim, [FIRST.prepared(attributes={}), SECOND.prepared()])
    (host,) = edits["r"].mounts
    inode = Path(host).stat().st_ino
    (other,) = edits["s"].mounts
    before = read(other)

    network = NetworkData("net1", ("10.1.0.7/24",), "02:00:00:00:00:07")
    metadata.update("u", "r", [FIRST.prepared(network=network)])
    metadata.update("u", "r", [FIRST.prepared(attributes={}, network=NetworkData("n"))])

    newest, oldest = read(host)
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    assert oldest == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert newest["metadata"] == {
        "name": "c",
        "namespace": "default",
        "uid": "u",
        "generation": 3,
    }
    assert newest["podClaimName"] == "entry"
    (device,) = newest["requests"][0]["devices"]  # type: ignore[index]
    assert device["networkData"] == {"interfaceName": "n"}
    assert Path(host).stat().st_ino == inode
    assert read(other) == before


@pytest.mark.parametrize(
    ("versions", "damage", "problem"),
    [
        pytest.param((), None, "not enabled", id="off"),
        pytest.param(("v1beta1",), None, "No such file", id="not-prepared"),
        pytest.param(("v1beta1",), "{", "cannot be updated", id="damaged"),
        pytest.param(("v1beta1",), "[]", "cannot be updated", id="something-else"),
    ],
)
def test_what_cannot_be_updated(
    versions: tuple[str, ...], damage: str | None, problem: str, tmp_path: Path
) -> None:
    metadata = files(tmp_path, *versions)
    if damage is not None:
        edits = metadata.write(a_claim(uid="u"), [FIRST.prepared()])
        (host,) = edits["r"].mounts
        Path(host).write_text(damage)

    with pytest.raises(DeviceMetadataError, match=problem):
        metadata.update("u", "r", [FIRST.prepared()])


def test_nothing_is_written_without_versions(tmp_path: Path) -> None:
    metadata = files(tmp_path)

    assert metadata.write(a_claim(uid="u"), [FIRST.prepared()]) == {}
    assert metadata.exist("u", ["r"])
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_version(tmp_path: Path) -> None:
    with pytest.raises(UnknownMetadataVersionError, match="available: v1beta1, v1alpha1"):
        files(tmp_path, "v1")
