"""What a claim has of one driver, and what the driver prepared for it. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from allot.api.base import is_set
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.quantity import Quantity
from allot.api.slices import DeviceAttribute
from allot.driver.kubelet_plugin.network_data import NetworkData

FROM_CLASS = "FromClass"


class ClaimReference(NamedTuple):
    """What the kubelet says about a claim."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ContainerEdits(NamedTuple):
    """What a container gets with a device (CDI's containerEdits)."""

    env: Mapping[str, str] = {}
    device_nodes: tuple[str, ...] = ()
    """Paths on the host, such as /dev/fuse."""
    mounts: Mapping[str, str] = {}
    """Paths in the container by paths on the host."""
    read_only: bool = False
    """Whether the mounts are."""

    def as_json(self) -> dict[str, Any]:
        edits: dict[str, Any] = {}
        if self.env:
            edits["env"] = [f"{name}={value}" for name, value in self.env.items()]
        if self.device_nodes:
            edits["deviceNodes"] = [{"path": path} for path in self.device_nodes]
        if self.mounts:
            options = ["bind", "ro" if self.read_only else "rw"]
            edits["mounts"] = [
                {"hostPath": host, "containerPath": inside, "options": options}
                for host, inside in self.mounts.items()
            ]
        return edits


@dataclass(frozen=True)
class AllocatedDevice:
    """A device, or one share of it, that a claim was allocated for one of its requests."""

    request: str
    """As in the allocation: `gpu`, or `gpu/large` for an alternative."""
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    """Other claims may use the device at the same time."""
    consumed_capacity: Mapping[str, Quantity] = field(default_factory=dict, compare=False)
    parameters: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    """Opaque configuration for this driver and request: of the class first, then of the claim."""

    @property
    def base_request(self) -> str:
        """The name of the request without the chosen alternative."""
        return self.request.partition("/")[0]

    @property
    def is_exclusive(self) -> bool:
        """Whether no other claim may use the device."""
        return self.share_id is None and not self.admin_access

    def prepared(
        self,
        edits: ContainerEdits | None = None,
        cdi_device_ids: tuple[str, ...] = (),
        attributes: Mapping[str, DeviceAttribute] | None = None,
        network: NetworkData | None = None,
    ) -> PreparedDevice:
        """The answer of a driver. `edits` are written as a CDI specification; `cdi_device_ids` exist already.

        `attributes` and `network` are for the device's metadata: by default the attributes that are published. What is not
        known yet comes with `KubeletPlugin.update_metadata`.
        """
        return PreparedDevice(self, edits, cdi_device_ids, attributes, network)


@dataclass(frozen=True)
class PreparedDevice:
    """A device that containers can use."""

    allocated: AllocatedDevice
    edits: ContainerEdits | None = None
    cdi_device_ids: tuple[str, ...] = ()
    attributes: Mapping[str, DeviceAttribute] | None = None
    network: NetworkData | None = None


@dataclass(frozen=True)
class AllocatedClaim:
    """A claim that is to be prepared, with this driver's devices."""

    reference: ClaimReference
    devices: tuple[AllocatedDevice, ...]
    claim: ResourceClaim | None = field(default=None, repr=False, compare=False)
    """The claim as the API server has it. None when it is unprepared: it may be gone."""

    @property
    def uid(self) -> str:
        return self.reference.uid


def allocated_devices(allocation: AllocationResult, driver: str) -> tuple[AllocatedDevice, ...]:
    """The devices of one driver, in the order of the allocation."""
    return tuple(
        AllocatedDevice(
            result.request,
            result.pool,
            result.device,
            result.share_id,
            bool(result.admin_access),
            result.consumed_capacity,
            tuple(_parameters(allocation, driver, result.request)),
        )
        for result in allocation.devices.results
        if result.driver == driver
    )


def _parameters(
    allocation: AllocationResult, driver: str, request: str
) -> Iterator[dict[str, Any]]:
    """Configuration of the class comes first. That of request `gpu` also applies to its alternative `gpu/large`."""
    names = {request, request.partition("/")[0]}
    config = allocation.devices.config
    for entry in sorted(config, key=lambda entry: entry.source != FROM_CLASS):
        opaque = entry.opaque
        if opaque is None or opaque.driver != driver or not is_set(opaque.parameters):
            continue
        if not entry.requests or not names.isdisjoint(entry.requests):
            yield msgspec.json.decode(opaque.parameters, type=dict[str, Any])
