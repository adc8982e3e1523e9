"""Story 3: members of a gang become ready together, when all of them have a slot.

allot binding-controller --driver gang.example.com --attacher examples/5007-binding-conditions/gang.py:Gang
"""

import asyncio
from collections.abc import Iterable

from allot.api.identities import SharedDeviceId
from allot.controllers.binding import Attacher, Attachment, AttachRequest


class Gang(Attacher):
    """A slot is ready when `size` slots are taken. A slot that was ready stays ready: its pod runs."""

    def __init__(self, size: int = 3) -> None:
        self.size = size
        self.members: set[SharedDeviceId] = set()
        self._changed = asyncio.Condition()

    async def attach(self, device: AttachRequest) -> None:
        async with self._changed:
            self.members.add(device.attachment.device)
            self._changed.notify_all()
            while len(self.members) < self.size:
                device.report("Waiting", f"{len(self.members)} of {self.size} members")
                await self._changed.wait()

    async def detach(self, device: Attachment) -> None:
        self.members.discard(device.device)

    async def attached(self) -> Iterable[Attachment]:
        return [Attachment(member) for member in self.members]
