"""The checkpoint of a driver: the claims that are prepared, or were about to be, in a file.

    prepare ──► entry, not prepared ──► the driver works ──► entry with its devices
    unprepare ──► the driver works ──► no entry

A driver that crashes in between finds an entry that says so. Two instances of a driver share the file during a
rolling update; changes are made under a lock, to what is in the file at that moment. After a reboot of the node
nothing is prepared.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.driver.kubelet_plugin.claims import AllocatedDevice, ClaimReference

log = logging.getLogger(__name__)

FILE_NAME: Final = "checkpoint.json"
LOCK_NAME: Final = "checkpoint.lock"
DAMAGED_SUFFIX: Final = ".damaged"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class CheckpointedDevice(NamedTuple):
    """A device of a claim, and the CDI devices that containers get for it."""

    allocated: AllocatedDevice
    cdi_device_ids: tuple[str, ...] = ()


class CheckpointedClaim(NamedTuple):
    """A claim that is prepared, or may be partly."""

    reference: ClaimReference
    devices: tuple[CheckpointedDevice, ...]
    is_prepared: bool = False

    @property
    def allocated(self) -> tuple[AllocatedDevice, ...]:
        return tuple(device.allocated for device in self.devices)


Claims = dict[str, CheckpointedClaim]
"""By UID."""


def boot_id() -> str:
    """Changes when the machine starts. Empty where that is not known."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


class DriverCheckpoint:
    """The file of one driver on one node."""

    def __init__(self, directory: Path, boot: str) -> None:
        self._path = directory / FILE_NAME
        self._lock = directory / LOCK_NAME
        self._boot = boot

    def read(self) -> Claims:
        """The claims in the file. A damaged file is renamed, and reported."""
        try:
            return self._decoded(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            damaged = self._path.with_name(self._path.name + DAMAGED_SUFFIX)
            self._path.replace(damaged)
            log.error(
                "%s: not a checkpoint (%s); renamed to %s. What was prepared is prepared again",
                self._path,
                error,
                damaged.name,
            )
            return {}

    @contextmanager
    def changing(self) -> Iterator[Claims]:
        """Claims to change; they are written at the end of the block, unless it raises."""
        with locked(self._lock):
            claims = self.read()
            before = dict(claims)
            yield claims
            if claims != before:
                self._write(claims)

    def _write(self, claims: Claims) -> None:
        data = json.dumps(
            {"bootID": self._boot, "claims": [_claim_json(claim) for claim in claims.values()]}
        )
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump({"version": 1, "data": data, "checksum": zlib.crc32(data.encode())}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _decoded(self, content: bytes) -> Claims:
        outer = json.loads(content)
        if zlib.crc32(outer["data"].encode()) != outer["checksum"]:
            raise ValueError("its checksum does not match")
        inner = json.loads(outer["data"])
        is_same_boot = inner["bootID"] == self._boot
        claims = (_claim(entry, is_same_boot) for entry in inner["claims"])
        return {claim.reference.uid: claim for claim in claims}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file. Blocks while another process has it."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _claim_json(claim: CheckpointedClaim) -> dict[str, Any]:
    return {
        **claim.reference._asdict(),
        "isPrepared": claim.is_prepared,
        "devices": [
            {
                "request": device.allocated.request,
                "pool": device.allocated.pool,
                "device": device.allocated.device,
                "shareID": device.allocated.share_id,
                "adminAccess": device.allocated.admin_access,
                "parameters": list(device.allocated.parameters),
                "cdiDeviceIDs": list(device.cdi_device_ids),
            }
            for device in claim.devices
        ],
    }


def _claim(entry: dict[str, Any], is_same_boot: bool) -> CheckpointedClaim:
    return CheckpointedClaim(
        ClaimReference(entry["namespace"], entry["name"], entry["uid"]),
        tuple(
            CheckpointedDevice(
                AllocatedDevice(
                    device["request"],
                    device["pool"],
                    device["device"],
                    device["shareID"],
                    device["adminAccess"],
                    parameters=tuple(device["parameters"]),
                ),
                tuple(device["cdiDeviceIDs"]),
            )
            for device in entry["devices"]
        ),
        entry["isPrepared"] and is_same_boot,
    )
