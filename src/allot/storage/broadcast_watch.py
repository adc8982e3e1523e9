"""One watcher of a broadcast: history first, if needed, then its topic."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from allot.storage.broadcast import Broadcast, Topic
from allot.storage.interface import (
    Change,
    SlowWatcherError,
    StorageError,
    StoreUnavailableError,
    Watch,
)
from allot.storage.transactions import Batch


class BroadcastWatch(Watch):
    """A watcher: of history first, if needed, then of its topic. For one reader at a time.

    It joins its topic with the first read. Until then it cannot fall behind.
    """

    def __init__(self, broadcast: Broadcast, prefix: str, after: int) -> None:
        self._broadcast, self._prefix = broadcast, prefix
        self._withdrawals = broadcast.withdrawals
        self._seen = after
        """Only newer revisions are delivered."""
        self._history: deque[Batch] = deque()
        self._topic: Topic | None = None
        self._next = 0
        """The number of the topic's next batch to deliver."""
        self._closed = False
        self._error: StorageError | None = None
        self._waiter: asyncio.Future[Any] | None = None

    async def __anext__(self) -> Sequence[Change]:
        while True:
            if self._closed:
                raise StopAsyncIteration
            if self._history:
                return self._history.popleft()
            topic = self._topic
            if topic is None:
                if self._try_to_join():
                    continue
                if self._broadcast.closed:
                    raise StopAsyncIteration
                await self._read_history()
                continue
            index = self._place(topic)
            if index < len(topic.batches):
                batch = topic.batches[index]
                self._next += 1
                if batch[0].revision > self._seen:
                    return batch
                continue
            if self._broadcast.closed:
                raise StopAsyncIteration
            self._try_to_listen(topic)
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            waiting = topic.idle if self.is_listening else topic.waiting
            waiting.add(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                waiting.discard(waiter)
                if not self._is_over:
                    raise
            finally:
                self._waiter = None

    def pending(self) -> list[Sequence[Change]]:
        if self._closed:
            return []
        past: list[Sequence[Change]] = list(self._history)
        self._history.clear()
        topic = self._topic or self._try_to_join()
        if topic is None:
            return past
        batches = topic.batches[self._place(topic) :]
        self._next += len(batches)
        if batches and batches[0][0].revision <= self._seen:
            batches = [batch for batch in batches if batch[0].revision > self._seen]
        self._try_to_listen(topic)
        return [*past, *batches]

    async def backlog(self) -> list[Sequence[Change]]:
        while not (self._closed or self._history or self._topic or self._try_to_join()):
            if self._broadcast.closed:
                raise StoreUnavailableError("the store is closed")
            await self._read_history()
        return self.pending()

    def close(self) -> None:
        self._closed = True
        self._leave()
        self.listener = None  # which mostly holds this watch
        self._history.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.cancel()

    def _place(self, topic: Topic) -> int:
        """The index of the next batch in the topic."""
        index = len(topic.batches) if self.is_listening else self._next - topic.first
        if topic.error is None and index >= 0:
            return index
        slow = SlowWatcherError(f"a watcher of {self._prefix!r} fell too far behind")
        self._error = topic.error or slow
        self._leave()
        topic.wake_all()  # the reader, too, if it is the listener that has found this
        raise self._error

    async def _read_history(self) -> None:
        upto = self._broadcast.revision
        self._waiter = asyncio.ensure_future(
            self._broadcast.read_history(self._prefix, self._seen, upto)
        )
        try:
            page = await self._waiter
        except asyncio.CancelledError:
            if not self._is_over:
                raise
            return
        finally:
            self._waiter = None
        self._history.extend(page.batches)
        self._seen = page.upto

    @property
    def _is_over(self) -> bool:
        """Whether a wait was cancelled because the watch, or the store, was closed; not its task."""
        task = asyncio.current_task()
        return (self._closed or self._broadcast.closed) and not (task and task.cancelling())

    def _try_to_join(self) -> Topic | None:
        if self._withdrawals != self._broadcast.withdrawals:
            # It may begin after a change that was withdrawn.
            self._error = SlowWatcherError(f"changes of {self._prefix!r} were withdrawn")
        if self._error is not None:
            raise self._error
        if self._broadcast.covers(self._seen):
            self._topic = self._broadcast.join(self._prefix, self._seen)
            self._next = self._topic.number_after(self._seen)
        return self._topic

    def _try_to_listen(self, topic: Topic) -> None:
        """All changes of the topic were delivered: the listener is given those that follow, unless it has some of them."""
        if (
            self.listener is not None
            and not self.is_listening
            and self._seen <= self._broadcast.revision
        ):
            topic.listeners.append(self.listener)
            self.is_listening = True

    def _leave(self) -> None:
        if self._topic is not None:
            if self.is_listening and self.listener is not None:
                self._topic.listeners.remove(self.listener)
                self.is_listening = False
            self._broadcast.leave(self._topic)
            self._topic = None
