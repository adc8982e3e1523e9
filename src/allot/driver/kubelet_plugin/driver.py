"""The class that a driver implements."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from allot.api.resource import DeviceTaint
from allot.api.slices import Device
from allot.driver.kubelet_plugin.claims import AllocatedClaim, PreparedDevice
from allot.driver.resource_slices import DriverResources

if TYPE_CHECKING:
    from allot.driver.kubelet_plugin.plugin import KubeletPlugin

log = logging.getLogger(__name__)


class PrepareError(Exception):
    """A claim cannot be prepared or unprepared. The kubelet shows the message in an event, and retries."""


class Driver(ABC):
    """A DRA driver on one node.

    `prepare` and `unprepare` must be idempotent: after a crash they are called again, for work that was partly done.
    Calls are serialized, unless the plugin is told otherwise.
    """

    name: str
    """Such as `gpu.example.com`."""
    cdi_class: str = "device"
    """CDI devices are named NAME/CLASS=..."""
    unhealthy_taint: DeviceTaint | None = None
    """Published on devices that are reported as unhealthy."""

    @abstractmethod
    def devices(self) -> Iterable[Device] | DriverResources:
        """The devices of the node, in the order of preference. Asked at start and by `KubeletPlugin.refresh`."""

    @abstractmethod
    async def prepare(self, claim: AllocatedClaim) -> Iterable[PreparedDevice]:
        """Make the devices usable by containers: one answer for each that containers can use.

        Raise `PrepareError` if that fails. A claim that is prepared is not prepared again.
        """

    async def unprepare(self, claim: AllocatedClaim) -> None:  # noqa: B027 - often nothing is to undo
        """Undo `prepare`, whether it finished or not. The claim may not exist any more."""

    async def run(self, plugin: KubeletPlugin) -> None:  # noqa: B027 - optional
        """Work beside the calls, such as looking for changes of the hardware. Cancelled at the end."""

    def on_error(self, error: Exception) -> None:
        """A problem with the published slices, such as fields that the API server drops. Logged by default."""
        log.error("%s: %s", self.name, error)
