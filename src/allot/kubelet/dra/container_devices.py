"""What the containers of a pod would get: their devices, and what CDI specifications add to them.

The pod's annotation `allot.dev/container-devices` shows it, as no container runs here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.kubelet.dra.cdi import CdiError, CdiSpecs, ContainerEdits
from allot.kubelet.dra.claim_info import ClaimInfo, PreparedDevice
from allot.kubelet.dra.claim_names import claim_names

CONTAINER_DEVICES: Final = "allot.dev/container-devices"

FindClaim = Callable[[ObjectKey], ClaimInfo | None]


class ContainerDevice(NamedTuple):
    """A device that a container may use."""

    claim: str
    """The claim's name."""
    driver: str
    device: PreparedDevice


class ContainerError(Exception):
    """A container cannot be created."""

    def __init__(self, container: str, problem: str) -> None:
        super().__init__(f"failed to create containerd container: {problem}")
        self.container = container


def devices_of(pod: Pod, container: Mapping[str, Any], find: FindClaim) -> list[ContainerDevice]:
    """The devices of one container: of its claims or their requests, and of its extended resources."""
    namespace, names = pod.metadata.namespace, claim_names(pod)
    wanted = [
        (names.get(claim.get("name", ""), ""), claim.get("request", ""))
        for claim in (container.get("resources") or {}).get("claims") or ()
    ]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        wanted += [
            (extended.resource_claim_name, mapping.request_name)
            for mapping in extended.request_mappings
            if mapping.container_name == container.get("name")
        ]
    found: dict[ContainerDevice, None] = {}
    for claim, request in wanted:
        info = find(ObjectKey(namespace, claim))
        if info is not None:
            for driver, devices in info.devices_by_driver.items():
                for device in devices:
                    if device.is_for(request):
                        found[ContainerDevice(claim, driver, device)] = None
    return list(found)


def container_devices(pod: Pod, find: FindClaim, specs: CdiSpecs) -> dict[str, Any]:
    """What each container gets, without containers that get nothing. Raises `ContainerError`."""
    shown = {}
    for field in ("initContainers", "containers"):
        for container in pod.get("spec", field, default=()):
            name = container.get("name", "")
            ids = [
                device_id
                for device in devices_of(pod, container, find)
                for device_id in device.device.cdi_device_ids
            ]
            if not ids:
                continue
            try:
                shown[name] = _shown(ids, specs.edits(ids))
            except CdiError as error:
                raise ContainerError(name, str(error)) from error
    return shown


def _shown(ids: list[str], edits: ContainerEdits) -> dict[str, Any]:
    parts = {
        "cdiDevices": ids,
        "env": edits.env,
        "mounts": edits.mounts,
        "deviceNodes": edits.device_nodes,
        "hooks": edits.hooks,
    }
    return {name: list(dict.fromkeys(part)) for name, part in parts.items() if part}


def annotation(devices: Mapping[str, Any]) -> str:
    return json.dumps(devices, sort_keys=True)


def described(parts: Mapping[str, Iterable[str]]) -> str:
    """What one container gets, in one line."""
    return "; ".join(f"{name} {', '.join(values)}" for name, values in parts.items())
