"""A binding that goes to the API server in one message with the last write of pre_bind.

    pre_bind ─ write ─┐
                      ├─► one message ─► write, then binding ─► two answers
    bind ─── binding ─┘

The server runs the binding only if the write succeeds, so the pod is bound on the same conditions as by two requests,
one round trip earlier. Not every server can: then nothing is sent early, and `bind` runs after pre_bind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from allot.client.ordered_client import in_order
from allot.scheduler.framework.status import Status

if TYPE_CHECKING:
    from allot.client.client import Client

T = TypeVar("T")

SendBinding = Callable[["Client"], Coroutine[Any, Any, Status | None]]
"""Sends the binding with a client of `in_order`. How it ended is awaited; None if it was not run, or is to be repeated."""


class OrderedBinding:
    """The binding of one pod. A pre_bind plugin may send it with its last write."""

    __slots__ = ("_client", "_outcome", "_send", "_sent")

    def __init__(self, client: Client, send: SendBinding) -> None:
        self._client = client
        self._send = send
        self._sent: Coroutine[Any, Any, Status | None] | None = None
        """Waits for the answer, until that is known."""
        self._outcome: Status | None = None

    def follow(self, send: Callable[[Client], Awaitable[T]]) -> Awaitable[T] | None:
        """What `send` sends, with the binding behind it; None if the server cannot run them in order.

        `send` makes one request with the client that it gets: the last one that pre_bind needs if it succeeds.
        """
        client = in_order(self._client, 2)
        if client is None:
            return None
        before = send(client)
        self._sent = self._send(client)
        return before

    async def outcome(self) -> Status | None:
        """How the binding ended. None if `bind` has to run: it was not sent, not run, or is to be repeated."""
        if self._sent is not None:
            sent, self._sent = self._sent, None
            self._outcome = await sent
        return self._outcome

    def cancel(self) -> None:
        """Do not wait for an answer any more."""
        if self._sent is not None:
            self._sent.close()
