"""A binding that goes to the API server in one message with the last write of pre_bind.

    pre_bind ─ write ─┐
                      ├─► one message ─► write, then binding ─► two answers
    bind ─── binding ─┘

The server runs the binding only if the write succeeds, so the pod is bound on the same conditions as by two requests,
one round trip earlier. Not every server can: then nothing is sent early, and `bind` runs after pre_bind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from allot.client.ordered_client import in_order
from allot.scheduler.framework.status import Status

if TYPE_CHECKING:
    from allot.client.client import Client

BindInOrder = Callable[["Client"], Coroutine[Any, Any, Status | None]]
"""Sends the binding with a client of `in_order`; None if it was not run, or is to be repeated."""


class OrderedBinding:
    """The binding of one pod. A pre_bind plugin may send it with its last write."""

    __slots__ = ("_bind", "_client", "_task")

    def __init__(self, client: Client, bind: BindInOrder) -> None:
        self._client = client
        self._bind = bind
        self._task: asyncio.Task[Status | None] | None = None

    def follow(self) -> Client | None:
        """A client for one request, which the binding follows; None if the server cannot run them in order.

        The request must be sent, and be the last one that pre_bind needs if it succeeds.
        """
        client = in_order(self._client, 2)
        if client is not None:
            # It starts when the caller waits for its answer: the requests are in order.
            self._task = asyncio.create_task(self._bind(client))
        return client

    async def outcome(self) -> Status | None:
        """How the binding ended. None if `bind` has to run: it was not sent, not run, or is to be repeated."""
        return None if self._task is None else await self._task

    def cancel(self) -> None:
        """Do not wait for an answer any more."""
        if self._task is not None:
            self._task.cancel()
