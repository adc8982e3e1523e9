"""The kubelet's checkpoint of claims: files that a restarted kubelet continues from.

The format is that of Kubernetes' `dra_manager_state`: JSON text within JSON, with its CRC-32. To replace the file for
every pod would cost more than the call to the driver. Claims that are begun are appended to a second file, one line
of the same format for each pod; it is emptied when the first has been replaced.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from allot.kubelet.dra.claim_info import ClaimInfo, ClaimReference, PreparedDevice

log = logging.getLogger(__name__)

KIND: Final = "DRACheckpoint"
API_VERSION: Final = "checkpoint.dra.kubelet.k8s.io/v1"
SKIPS_UNPREPARE: Final = "SkipsUnprepare"
"""An addition of ours."""
DAMAGED_SUFFIX: Final = ".damaged"
BEGUN_SUFFIX: Final = ".begun"


class CheckpointError(Exception):
    """The file is not a checkpoint, or is damaged."""


def encode_checkpoint(infos: Iterable[ClaimInfo]) -> bytes:
    data = json.dumps(
        {
            "kind": KIND,
            "apiVersion": API_VERSION,
            "ClaimInfoStateList": [_state(info) for info in infos],
        },
        separators=(",", ":"),
    )
    return json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())}).encode()


def decode_checkpoint(content: bytes) -> list[ClaimInfo]:
    """Raises `CheckpointError`."""
    try:
        outer = json.loads(content)
        data = outer["Data"]
        if zlib.crc32(data.encode()) != outer["Checksum"]:
            raise CheckpointError("its checksum does not match")
        inner = json.loads(data)
        if inner["kind"] != KIND or inner["apiVersion"] != API_VERSION:
            raise CheckpointError(f"it is a {inner['kind']} of {inner['apiVersion']}")
        return [_info(state) for state in inner["ClaimInfoStateList"] or ()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"it is not a checkpoint: {error}") from error


class Checkpoint:
    """The checkpoint files of one node."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun_path = path.with_name(path.name + BEGUN_SUFFIX)
        self._written = b""
        self._has_begun = True  # perhaps, until the file is emptied

    def load(self) -> list[ClaimInfo]:
        """The claims in the files; none if they do not exist. A damaged file is renamed, and reported."""
        found = {info.reference.key: info for info in self._saved()}
        for info in self._begun():
            known = found.get(info.reference.key)
            if known is not None and known.reference == info.reference:
                known.pod_uids |= info.pod_uids
            else:
                found[info.reference.key] = info
        return list(found.values())

    def _saved(self) -> list[ClaimInfo]:
        try:
            return decode_checkpoint(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except CheckpointError as error:
            damaged = self._path.with_name(self._path.name + DAMAGED_SUFFIX)
            self._path.replace(damaged)
            log.error(
                "%s: %s; renamed to %s. Claims of pods that ended meanwhile are not unprepared",
                self._path,
                error,
                damaged.name,
            )
            return []

    def _begun(self) -> Iterator[ClaimInfo]:
        """A line that is cut is the last one: its drivers were not called."""
        try:
            lines = self._begun_path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield from decode_checkpoint(line)
            except CheckpointError:
                return

    def begin(self, infos: Iterable[ClaimInfo]) -> None:
        """Note claims before drivers are called about them."""
        self._has_begun = True
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self._begun_path, flags, 0o644)
        try:
            os.write(descriptor, encode_checkpoint(infos) + b"\n")
        finally:
            os.close(descriptor)

    def save(self, infos: Iterable[ClaimInfo]) -> None:
        """Replace the file, unless nothing has changed. It is complete whenever the process ends."""
        content = encode_checkpoint(infos)
        if content != self._written:
            temporary = self._path.with_name(f".{self._path.name}.new")
            temporary.write_bytes(content)
            temporary.replace(self._path)
            self._written = content
        if self._has_begun:
            with suppress(FileNotFoundError):
                os.truncate(self._begun_path, 0)
            self._has_begun = False


def _state(info: ClaimInfo) -> dict[str, Any]:
    reference = info.reference
    return {
        "ClaimUID": reference.uid,
        "ClaimName": reference.name,
        "Namespace": reference.namespace,
        "PodUIDs": {uid: {} for uid in sorted(info.pod_uids)},
        "DriverState": {
            driver: _driver_state(devices, driver in info.unprepare_skips)
            for driver, devices in info.devices_by_driver.items()
        },
    }


def _driver_state(devices: Iterable[PreparedDevice], skips_unprepare: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"Devices": [_device_state(device) for device in devices]}
    return state | {SKIPS_UNPREPARE: True} if skips_unprepare else state


def _device_state(device: PreparedDevice) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share_id,
        "RequestNames": list(device.request_names),
        "CDIDeviceIDs": list(device.cdi_device_ids),
    }


def _info(state: dict[str, Any]) -> ClaimInfo:
    by_driver = state["DriverState"] or {}
    return ClaimInfo(
        ClaimReference(state["Namespace"], state["ClaimUID"], state["ClaimName"]),
        set(state["PodUIDs"] or ()),
        {
            driver: tuple(_device(device) for device in driver_state["Devices"] or ())
            for driver, driver_state in by_driver.items()
        },
        frozenset(driver for driver, each in by_driver.items() if each.get(SKIPS_UNPREPARE)),
    )


def _device(state: dict[str, Any]) -> PreparedDevice:
    return PreparedDevice(
        state["PoolName"],
        state["DeviceName"],
        tuple(state["RequestNames"] or ()),
        tuple(state["CDIDeviceIDs"] or ()),
        state.get("ShareID"),
    )
