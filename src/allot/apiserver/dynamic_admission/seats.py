"""The seat of the request that is being answered: it is free while the request waits for a webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol


class Seat(Protocol):
    """What flow control gave to a request."""

    def pause(self) -> None:
        """Let another request have it."""

    async def resume(self) -> None:
        """Wait for it again; raises `ApiError` with 429."""


SEAT: ContextVar[Seat | None] = ContextVar("seat", default=None)


@asynccontextmanager
async def without_seat() -> AsyncIterator[None]:
    """Waiting for others, which may take long."""
    seat = SEAT.get()
    if seat is None:
        yield
        return
    seat.pause()
    try:
        yield
    finally:
        await seat.resume()
