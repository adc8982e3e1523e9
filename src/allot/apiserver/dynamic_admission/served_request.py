"""The request that is being answered: it has no seat while it waits for a webhook, and collects annotations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol


class ServedRequest(Protocol):
    """What admission asks of it."""

    def pause(self) -> None:
        """Let another request have its seat."""

    async def resume(self) -> None:
        """Wait for a seat again; raises `ApiError` with 429."""

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to its audit event."""


REQUEST: ContextVar[ServedRequest | None] = ContextVar("served_request", default=None)


@asynccontextmanager
async def without_seat() -> AsyncIterator[None]:
    """Waiting for others, which may take long."""
    request = REQUEST.get()
    if request is None:
        yield
        return
    request.pause()
    try:
        yield
    finally:
        await request.resume()
