"""Story 2: GPUs of a shared pool are attached to the node that the scheduler chose.

allot binding-controller --driver gpus.fabric.example.com --attacher examples/binding-conditions/fabric.py:FabricAttacher
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from allot.api.identities import SharedDeviceId
from allot.controllers.binding import Attacher, AttachFailedError, Attachment, AttachRequest


class PortBusyError(Exception):
    """All ports of the server are being reconfigured."""


class PortDarkError(Exception):
    """There is no light on the device's port."""


@dataclass
class Switch:
    """A stand-in for a fabric manager. It knows devices and servers, and nothing of claims."""

    connected: dict[SharedDeviceId, str] = field(default_factory=dict)
    delay_seconds: float = 5.0
    busy: dict[str, int] = field(default_factory=dict)
    """How often a server still says no."""
    dark: set[str] = field(default_factory=set)
    hanging: set[str] = field(default_factory=set)

    async def connect(self, device: SharedDeviceId, server: str) -> None:
        if self.busy.get(server):
            self.busy[server] -= 1
            raise PortBusyError(server)
        if device.device in self.hanging:
            await asyncio.Event().wait()
        await asyncio.sleep(self.delay_seconds)
        if device.device in self.dark:
            raise PortDarkError(device.device)
        self.connected[device] = server

    async def disconnect(self, device: SharedDeviceId) -> None:
        await asyncio.sleep(self.delay_seconds / 2)
        self.connected.pop(device, None)


class FabricAttacher(Attacher):
    """Connects a GPU to a node."""

    def __init__(self, switch: Switch | None = None) -> None:
        self.switch = switch or Switch()

    async def attach(self, device: AttachRequest) -> None:
        gpu = device.attachment.device
        if self.switch.connected.get(gpu) == device.node:
            return
        device.report("Connecting", f"to {device.node}")
        try:
            await self.switch.connect(gpu, device.node)
        except PortBusyError:
            raise AttachFailedError("PortBusy", f"{device.node} has no free port yet") from None
        except PortDarkError:
            raise AttachFailedError("LinkDown", "no light", permanent=True) from None

    async def detach(self, device: Attachment) -> None:
        # Another claim may have the GPU on another node by now: that is not ours to undo.
        if self.switch.connected.get(device.device) in (device.node, None):
            await self.switch.disconnect(device.device)

    async def attached(self) -> Iterable[Attachment]:
        return [Attachment(gpu, node) for gpu, node in self.switch.connected.items()]
