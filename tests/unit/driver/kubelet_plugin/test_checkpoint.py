"""The checkpoint of a driver: what survives restarts, crashes, damage and reboots."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot.driver.kubelet_plugin.checkpoint import (
    FILE_NAME,
    CheckpointedClaim,
    CheckpointedDevice,
    DriverCheckpoint,
)
from allot.driver.kubelet_plugin.claims import AllocatedDevice, ClaimReference

REFERENCE = ClaimReference("default", "claim", "uid-1")
DEVICES = (
    CheckpointedDevice(AllocatedDevice("r", "pool", "d1", "share", True), ("v/c=1",)),
    CheckpointedDevice(AllocatedDevice("r/sub", "pool", "d2", parameters=({"a": 1},))),
)
CLAIM = CheckpointedClaim(REFERENCE, DEVICES, is_prepared=True)


def written(directory: Path, boot: str = "boot") -> DriverCheckpoint:
    checkpoint = DriverCheckpoint(directory, boot)
    with checkpoint.changing() as claims:
        claims["uid-1"] = CLAIM
    return checkpoint


def test_claims_survive_a_restart(tmp_path: Path) -> None:
    written(tmp_path)

    assert DriverCheckpoint(tmp_path, "boot").read() == {"uid-1": CLAIM}


def test_nothing_is_prepared_after_a_reboot(tmp_path: Path) -> None:
    written(tmp_path)

    assert DriverCheckpoint(tmp_path, "next").read() == {"uid-1": CLAIM._replace(is_prepared=False)}


def test_another_instance_sees_changes_and_adds_to_them(tmp_path: Path) -> None:
    first, second = written(tmp_path), DriverCheckpoint(tmp_path, "boot")
    other = CLAIM._replace(reference=REFERENCE._replace(uid="uid-2"))
    with second.changing() as claims:
        claims["uid-2"] = other

    assert first.read() == {"uid-1": CLAIM, "uid-2": other}


def test_a_change_that_fails_is_not_written(tmp_path: Path) -> None:
    checkpoint = written(tmp_path)

    def fail() -> None:
        with checkpoint.changing() as claims:
            claims.clear()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert checkpoint.read() == {"uid-1": CLAIM}


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"data": "{}", "checksum": 1}'])
def test_a_damaged_file_is_kept_aside(tmp_path: Path, content: bytes) -> None:
    checkpoint = DriverCheckpoint(tmp_path, "boot")
    (tmp_path / FILE_NAME).write_bytes(content)

    assert checkpoint.read() == {}
    assert (tmp_path / f"{FILE_NAME}.damaged").read_bytes() == content
