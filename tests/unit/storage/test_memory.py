"""What only the store in memory does: forget by itself."""

from __future__ import annotations

import asyncio

from allot.storage.interface import Put
from allot.storage.memory import MemoryStore


def test_old_history_is_forgotten() -> None:
    async def run() -> None:
        store = await MemoryStore.open(history_seconds=0.05)
        for number in range(5):
            await store.write(Put("key", b"%d" % number))
        async with asyncio.timeout(60):
            while await store.oldest() < 5:
                await asyncio.sleep(0.01)
        entry = await store.get("key")
        assert entry is not None
        assert entry.value == b"4"
        await store.close()

    asyncio.run(run())
