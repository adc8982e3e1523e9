"""Story 1: an FPGA is programmed while the pod waits.

allot binding-controller --driver fpga.example.com --attacher examples/binding-conditions/fpga.py:FpgaAttacher
"""

import asyncio
from collections.abc import Iterable

from allot.api.identities import SharedDeviceId
from allot.controllers.binding import Attacher, AttachFailedError, Attachment, AttachRequest

BITSTREAMS = {"av1-encoder": 20, "regex-engine": 5}
"""Blocks to write, by name."""


class FpgaAttacher(Attacher):
    """Writes the bitstream that the claim asks for. What the boards hold survives restarts of ours."""

    def __init__(self, seconds_per_block: float = 6.0) -> None:
        self.seconds_per_block = seconds_per_block
        self.boards: dict[SharedDeviceId, str] = {}

    async def attach(self, device: AttachRequest) -> None:
        bitstream = ""
        for parameters in device.parameters:  # the claim's own come last
            bitstream = parameters.get("bitstream", bitstream)
        blocks = BITSTREAMS.get(bitstream)
        if blocks is None:
            # Another board would not help either, but the claim should not wait for nothing.
            raise AttachFailedError("NoSuchBitstream", repr(bitstream), permanent=True)
        board = device.attachment.device
        if self.boards.get(board) == bitstream:
            return  # programmed before a restart
        self.boards[board] = ""
        for block in range(blocks):
            device.report("Programming", f"{bitstream}: {100 * block // blocks} %")
            await asyncio.sleep(self.seconds_per_block)
        self.boards[board] = bitstream

    async def detach(self, device: Attachment) -> None:
        self.boards.pop(device.device, None)  # erased, finished or not

    async def attached(self) -> Iterable[Attachment]:
        return [Attachment(board) for board in self.boards]
