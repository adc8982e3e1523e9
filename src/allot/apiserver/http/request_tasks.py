"""The tasks that answer the requests of connections, one after the other: to start a task costs as much as a short request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from allot.apiserver.dynamic_admission.served_request import REQUEST

MAX_IDLE: Final = 16
"""Tasks that are kept for further requests."""

Work = Coroutine[Any, Any, None]
"""Answers a request. It raises nothing."""


class RequestTasks:
    """For use in one event loop."""

    def __init__(self) -> None:
        self.busy: set[asyncio.Task[None]] = set()
        self._idle: list[tuple[asyncio.Task[None], asyncio.Future[Work]]] = []
        """Tasks without a request, and what each waits for."""

    def run(self, work: Work) -> None:
        """Do it in the next iteration of the event loop."""
        if self._idle:
            task, waiting = self._idle.pop()
            waiting.set_result(work)
        else:
            task = asyncio.get_running_loop().create_task(self._work(work))
        self.busy.add(task)

    def close(self) -> None:
        """End the tasks that have no request."""
        while self._idle:
            self._idle.pop()[0].cancel()

    async def _work(self, work: Work) -> None:
        task, create_future = asyncio.current_task(), asyncio.get_running_loop().create_future
        assert task is not None
        while True:
            try:
                await work
            finally:
                self.busy.discard(task)
            del work  # of which bodies may be large
            if len(self._idle) >= MAX_IDLE or task.cancelling():
                return
            REQUEST.set(None)
            waiting: asyncio.Future[Work] = create_future()
            self._idle.append((task, waiting))
            work = await waiting
