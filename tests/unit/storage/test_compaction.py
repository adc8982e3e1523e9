"""Periodic compaction."""

from __future__ import annotations

import asyncio

import pytest

from allot.storage.compaction import keep_compacting
from allot.storage.interface import StoreUnavailableError


def test_compaction_goes_on_after_failures(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception] = [StoreUnavailableError("full"), OSError("gone"), KeyError("bug")]

    async def scenario() -> None:
        done = asyncio.Event()

        async def compact() -> None:
            if failures:
                raise failures.pop(0)
            done.set()

        compacting = asyncio.create_task(keep_compacting(compact, 0))
        async with asyncio.timeout(60):
            await done.wait()
        compacting.cancel()

    asyncio.run(scenario())

    assert [record.getMessage() for record in caplog.records] == [
        "compaction failed, retrying: full",
        "compaction failed, retrying: gone",
        "compaction failed, retrying",
    ]
