"""CDI specifications of a driver: one file for each prepared claim."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from allot.driver.kubelet_plugin.claims import ContainerEdits, PreparedDevice

CDI_VERSION: Final = "0.6.0"
_SAFE_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}").fullmatch


def is_safe_uid(uid: str) -> bool:
    """Whether a claim's UID can be part of a file name and of a CDI device's name."""
    return _SAFE_UID(uid) is not None


class CdiFiles:
    """The specifications of one driver in a directory such as /var/run/cdi."""

    def __init__(self, directory: Path, vendor: str, device_class: str) -> None:
        self._directory = directory
        self._kind = f"{vendor}/{device_class}"
        self._prefix = f"{vendor}-{device_class}"

    def device_ids(
        self,
        uid: str,
        devices: Sequence[PreparedDevice],
        metadata: Mapping[str, ContainerEdits] = MappingProxyType({}),
    ) -> list[tuple[str, ...]]:
        """The CDI devices of each device: its own, one for its edits, and one for the metadata of its request.

        The latter comes with the first device of the request: a container has all devices of a request, or none.
        """
        left = set(metadata)
        found = []
        for index, device in enumerate(devices):
            ids = [*device.cdi_device_ids]
            if device.edits is not None:
                ids.append(f"{self._kind}={_name(uid, index)}")
            request = device.allocated.base_request
            if request in left:
                left.remove(request)
                ids.append(f"{self._kind}={_metadata_name(uid, request)}")
            found.append(tuple(ids))
        return found

    def write(
        self,
        uid: str,
        devices: Sequence[PreparedDevice],
        metadata: Mapping[str, ContainerEdits] = MappingProxyType({}),
    ) -> None:
        """Write the file of a claim. It is complete whenever a container runtime reads it."""
        edits = {
            _name(uid, index): device.edits
            for index, device in enumerate(devices)
            if device.edits is not None
        }
        edits |= {_metadata_name(uid, request): each for request, each in metadata.items()}
        if not edits:
            self.remove(uid)
            return
        content = json.dumps(_spec(self._kind, edits), indent=1)
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._path(uid)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(content, encoding="utf-8")
        temporary.replace(path)

    def exists(self, uid: str) -> bool:
        return self._path(uid).exists()

    def remove(self, uid: str) -> None:
        self._path(uid).unlink(missing_ok=True)

    def owns(self, device_id: str) -> bool:
        """Whether the CDI device is defined in one of these files."""
        return device_id.startswith(f"{self._kind}=")

    def _path(self, uid: str) -> Path:
        return self._directory / f"{self._prefix}-{uid}.json"


def _name(uid: str, index: int) -> str:
    return f"{uid}-{index}"


def _metadata_name(uid: str, request: str) -> str:
    return f"{uid}-metadata-{request}"


def _spec(kind: str, edits: dict[str, ContainerEdits]) -> dict[str, object]:
    return {
        "cdiVersion": CDI_VERSION,
        "kind": kind,
        "devices": [
            {"name": name, "containerEdits": edit.as_json()} for name, edit in edits.items()
        ],
    }
