"""Drivers of devices that are attached to a node before a pod starts, such as those of a fabric (KEP-5007).

    claim allocated ──► FabricDriver.attach ──► binding conditions are true ──► pod bound to the node
      ──► FabricDriver.prepare, on the node ──► containers ──► unprepare ──► claim released ──► detach

One class has all of it. `controller` makes the part that runs once in the cluster, `allot.driver.KubeletPlugin` is the
part that runs on every node; a test may run both in one process.
"""

from __future__ import annotations

from allot.client.client import Client
from allot.controllers.binding import (
    Attacher,
    AttachFailedError,
    Attachment,
    AttachRequest,
    BindingController,
    BindingSettings,
)
from allot.driver.kubelet_plugin.claims import AllocatedClaim, PreparedDevice
from allot.driver.kubelet_plugin.driver import Driver

__all__ = ["AttachFailedError", "AttachRequest", "Attachment", "FabricDriver"]


class FabricDriver(Driver, Attacher):
    """Implement `devices`, `attach` and `detach`; and `prepare` and `unprepare`, if containers need more than the device."""

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        """The devices as they are, without anything for containers."""
        return [device.prepared() for device in claim.devices]

    def controller(
        self,
        client: Client,
        settings: BindingSettings = BindingSettings(),  # noqa: B008 - a value
    ) -> BindingController:
        """The control loop that calls `attach` and `detach` for all nodes."""
        return BindingController(client, self.name, self, settings)
