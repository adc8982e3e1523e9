"""Device metadata (KEP-5304): files in which containers find the attributes of the devices that they got.

    resourceclaims/CLAIM/REQUEST/DRIVER-metadata.json                  a claim that the pod references
    resourceclaimtemplates/ENTRY/REQUEST/DRIVER-metadata.json          a claim from a template; ENTRY of the pod's spec

A file has the same DeviceMetadata object once for each version, newest first. It is written before the driver's answer, and mounted
read-only by a CDI device of its own, which the first device of the request brings along. Several drivers of one request have
a file each.

Metadata may be deferred: a network driver knows addresses only when the pod's sandbox exists. It updates the file then, before containers
start; each update raises the generation. A mount shows the file that existed when the container started, so that it is never
replaced by another file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from allot.api.claims import ResourceClaim
from allot.api.decoding import to_builtin
from allot.api.resource import POD_CLAIM_NAME
from allot.api.slices import Device
from allot.driver.kubelet_plugin.claims import ContainerEdits, PreparedDevice

GROUP: Final = "metadata.resource.k8s.io"
KIND: Final = "DeviceMetadata"
VERSIONS: Final = ("v1beta1", "v1alpha1")
CONTAINER_DIRECTORY: Final = "/var/run/kubernetes.io/dra-device-attributes"
HOST_DIRECTORY: Final = "dra-device-metadata"

PublishedDevices = Callable[[], Mapping[tuple[str, str], Device]]
"""The devices that the driver has published, by pool and name."""


class UnknownMetadataVersionError(ValueError):
    """A version of device metadata that does not exist."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"unknown version {version} of device metadata; available: {', '.join(VERSIONS)}"
        )


class DeviceMetadataError(Exception):
    """Metadata that cannot be updated."""


class DeviceMetadataFiles:
    """The metadata files of one driver's claims."""

    def __init__(
        self, directory: Path, driver: str, versions: Sequence[str], published: PublishedDevices
    ) -> None:
        """`directory` is the driver's own. Without versions no files are written."""
        for version in versions:
            if version not in VERSIONS:
                raise UnknownMetadataVersionError(version)
        self._directory = directory / HOST_DIRECTORY
        self._driver = driver
        self._versions = sorted(versions, key=VERSIONS.index)
        self._published = published

    def write(
        self, claim: ResourceClaim, prepared: Iterable[PreparedDevice]
    ) -> dict[str, ContainerEdits]:
        """Write a file for each request; what containers get to read it, by the name of the request."""
        by_request: dict[str, list[PreparedDevice]] = {}
        for device in prepared if self._versions else ():
            by_request.setdefault(device.allocated.base_request, []).append(device)
        edits = {}
        for request, devices in by_request.items():
            path = self._path(claim.metadata.uid, request)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._content(_header(claim), devices), encoding="utf-8")
            inside = f"{CONTAINER_DIRECTORY}/{_place(claim)}/{request}/{path.name}"
            edits[request] = ContainerEdits(mounts={str(path): inside}, read_only=True)
        return edits

    def update(self, uid: str, request: str, devices: Sequence[PreparedDevice]) -> None:
        """Replace what the file of a request says about its devices. Raises `DeviceMetadataError`."""
        if not self._versions:
            raise DeviceMetadataError("device metadata is not enabled for this driver")
        path = self._path(uid, request)
        try:
            with path.open("r+", encoding="utf-8") as file:
                header = _header_of_next_generation(file.read())
                file.seek(0)
                file.write(self._content(header, devices))
                file.truncate()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DeviceMetadataError(f"{path} cannot be updated: {error}") from error

    def exist(self, uid: str, requests: Iterable[str]) -> bool:
        """Whether the files of a claim are all there."""
        return not self._versions or all(self._path(uid, each).exists() for each in requests)

    def remove(self, uid: str) -> None:
        shutil.rmtree(self._directory / uid, ignore_errors=True)

    def _path(self, uid: str, request: str) -> Path:
        return self._directory / uid / request / f"{self._driver}-metadata.json"

    def _content(self, header: Mapping[str, Any], devices: Sequence[PreparedDevice]) -> str:
        by_name: dict[str, list[dict[str, Any]]] = {}
        for device in devices:
            by_name.setdefault(device.allocated.request, []).append(self._device(device))
        requests = [{"name": name, "devices": found} for name, found in by_name.items()]
        return "".join(
            json.dumps(
                {
                    "kind": KIND,
                    "apiVersion": f"{GROUP}/{version}",
                    **header,
                    "requests": requests,
                }
            )
            + "\n"
            for version in self._versions
        )

    def _device(self, prepared: PreparedDevice) -> dict[str, Any]:
        allocated = prepared.allocated
        found: dict[str, Any] = {
            "driver": self._driver,
            "pool": allocated.pool,
            "name": allocated.device,
        }
        attributes = prepared.attributes
        if attributes is None:
            published = self._published().get((allocated.pool, allocated.device))
            attributes = published.attributes if published is not None else {}
        if attributes:
            encoded = msgspec.json.encode(attributes, enc_hook=to_builtin)
            found["attributes"] = msgspec.json.decode(encoded)
        if prepared.network is not None:
            found["networkData"] = prepared.network.as_json()
        return found


def _header(claim: ResourceClaim) -> dict[str, Any]:
    metadata = claim.metadata
    header: dict[str, Any] = {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "generation": 1,
        }
    }
    entry = metadata.annotations.get(POD_CLAIM_NAME)
    if entry:
        header["podClaimName"] = entry
    return header


def _header_of_next_generation(content: str) -> dict[str, Any]:
    newest = json.loads(content.partition("\n")[0])
    metadata = newest["metadata"]
    header = {"metadata": {**metadata, "generation": metadata["generation"] + 1}}
    if "podClaimName" in newest:
        header["podClaimName"] = newest["podClaimName"]
    return header


def _place(claim: ResourceClaim) -> str:
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
    return f"resourceclaimtemplates/{entry}" if entry else f"resourceclaims/{claim.metadata.name}"
