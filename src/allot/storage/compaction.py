"""Periodic compaction, which goes on after failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from allot.storage.interface import StorageError

logger = logging.getLogger(__name__)


async def keep_compacting(compact: Callable[[], Awaitable[None]], interval_seconds: float) -> None:
    """Compact at intervals, until cancelled."""
    while True:
        await asyncio.sleep(interval_seconds)
        try:
            await compact()
        except (StorageError, OSError) as error:
            logger.warning("compaction failed, retrying: %s", error)
        except Exception:
            logger.exception("compaction failed, retrying")
