"""A clock that tests move, a transport with scripted answers, and a small API server."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from allot.client.client import Client
from allot.client.errors import TransportError
from allot.client.retries import RetryPolicy
from allot.client.transport import JSON, Query, Response, Stream

START = datetime(2026, 1, 1, tzinfo=UTC)


async def settle(rounds: int = 20) -> None:
    """Let all tasks do what they can do now."""
    for _ in range(rounds):
        await asyncio.sleep(0)


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Moves only when a test moves it; with `hasty`, a sleep moves it."""

    def __init__(self, *, hasty: bool = False) -> None:
        self._now = 0.0
        self._hasty = hasty
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._numbers = itertools.count()
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    def today(self) -> datetime:
        return START + timedelta(seconds=self._now)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self._now + seconds, next(self._numbers), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self._hasty:
            self._move(self._now + seconds)
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        self.call_later(seconds, woken.set)
        await woken.wait()

    def _move(self, until: float) -> None:
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if timer.callback is not None:
                timer.callback()
        self._now = max(self._now, until)

    async def advance(self, seconds: float) -> None:
        """Let time pass in steps small enough for every task to act in between."""
        end = self._now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            self._move(self._timers[0][0])
            await settle()
        self._move(end)
        await settle()


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: Any
    content_type: str


def status(code: int, reason: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": f"{code} {reason}",
        "details": details,
    }


def answer(code: int, content: Any = None, **headers: str) -> Response:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    if content is None:
        content = {} if code < 300 else status(code)
    return Response(code, pairs, msgspec.json.encode(content))


LOST = TransportError("the connection broke", was_sent=True)
REFUSED = TransportError("connection refused", was_sent=False)


class ScriptedTransport:
    """Gives its answers in order and remembers what was asked."""

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        content = msgspec.json.decode(body) if body else None
        self.requests.append(Request(method, path, dict(query or {}), content, content_type))
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        self.requests.append(Request("WATCH", path, dict(query or {}), None, ""))
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found

        async def chunks() -> AsyncIterator[bytes]:
            yield found.body

        yield Stream(found.code, found.headers, chunks())

    async def close(self) -> None:
        pass


def scripted(
    *answers: Response | Exception, hasty: bool = True
) -> tuple[Client, ScriptedTransport, FakeClock]:
    transport = ScriptedTransport(*answers)
    clock = FakeClock(hasty=hasty)
    return Client(transport, retry=RetryPolicy(chance=lambda: 0.0), clock=clock), transport, clock


class FakeApi:
    """Config maps with a history, lists in pages, watches that can be cut, versions that expire."""

    def __init__(self, *, streaming: bool = True, piece: int = 1000) -> None:
        self.streaming = streaming
        self.piece = piece
        self.revision = 1
        self.oldest = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.trouble: list[Response | TransportError] = []
        """What comes instead of the next answers."""
        self.lists = 0
        self.watches = 0
        """Watches that were opened."""
        self._log: list[tuple[int, str, dict[str, Any]]] = []
        self._uids = itertools.count()
        self._streams: list[_FakeStream] = []

    # --- what happens to it ---

    def put(self, name: str) -> None:
        known = self.objects.get(name)
        uid = known["metadata"]["uid"] if known else f"uid-{next(self._uids)}"
        self._change(name, uid, "MODIFIED" if known else "ADDED")

    def delete(self, name: str) -> None:
        known = self.objects.pop(name, None)
        if known is not None:
            self._change(name, known["metadata"]["uid"], "DELETED")

    def _change(self, name: str, uid: str, type_: str) -> None:
        self.revision += 1
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": str(self.revision),
        }
        obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
        if type_ != "DELETED":
            self.objects[name] = obj
        self._log.append((self.revision, type_, obj))
        for stream in self._streams:
            stream.wake.set()

    def compact(self) -> None:
        self.oldest = self.revision

    def cut(self) -> None:
        """Break all watches."""
        for stream in self._streams:
            stream.failure = LOST
            stream.wake.set()

    def end(self) -> None:
        """End all watches in good order."""
        for stream in self._streams:
            stream.is_over = True
            stream.wake.set()

    # --- as a transport ---

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        await asyncio.sleep(0)
        if self.trouble:
            trouble = self.trouble.pop(0)
            if isinstance(trouble, TransportError):
                raise trouble
            return trouble
        assert method == "GET"
        self.lists += 1
        query = query or {}
        revision, after = self.revision, ""
        if "continue" in query:
            text, after = query["continue"].split(":")
            revision = int(text)
            if revision < self.oldest:
                return answer(410, status(410, "Expired"))
        names = sorted(name for name in self._state_at(revision) if name > after)
        limit = int(query.get("limit", 0)) or len(names)
        shown, rest = names[:limit], names[limit:]
        metadata = {"resourceVersion": str(revision)}
        if rest:
            metadata["continue"] = f"{revision}:{shown[-1]}"
        state = self._state_at(revision)
        return answer(200, {"metadata": metadata, "items": [state[name] for name in shown]})

    def _state_at(self, revision: int) -> dict[str, dict[str, Any]]:
        state: dict[str, dict[str, Any]] = {}
        for changed, type_, obj in self._log:
            if changed <= revision:
                name = obj["metadata"]["name"]
                state[name] = obj
                if type_ == "DELETED":
                    del state[name]
        return state

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        await asyncio.sleep(0)
        query = query or {}
        if self.trouble:
            trouble = self.trouble.pop(0)
            if isinstance(trouble, TransportError):
                raise trouble
            yield Stream(trouble.code, trouble.headers, _once(trouble.body))
            return
        if "sendInitialEvents" in query and not self.streaming:
            refused = answer(422, status(422, "Invalid"))
            yield Stream(refused.code, refused.headers, _once(refused.body))
            return
        stream = _FakeStream()
        self.watches += 1
        self._streams.append(stream)
        try:
            yield Stream(200, (), self._pieces(stream, query))
        finally:
            self._streams.remove(stream)

    async def close(self) -> None:
        pass

    async def _pieces(self, stream: _FakeStream, query: Query) -> AsyncIterator[bytes]:
        async for lines in self._lines(stream, query):
            for start in range(0, len(lines), self.piece):
                if stream.failure is not None:
                    raise stream.failure
                yield lines[start : start + self.piece]
                await asyncio.sleep(0)

    async def _lines(self, stream: _FakeStream, query: Query) -> AsyncIterator[bytes]:
        if "sendInitialEvents" in query:
            seen = self.revision
            if self.objects:
                yield b"".join(_line("ADDED", obj) for obj in self.objects.values())
            annotations = {"k8s.io/initial-events-end": "true"}
            metadata = {"resourceVersion": str(seen), "annotations": annotations}
            yield _line("BOOKMARK", {"metadata": metadata})
        else:
            seen = int(query["resourceVersion"])
        while not stream.is_over:
            if stream.failure is not None:
                raise stream.failure
            if seen < self.oldest:
                yield _line("ERROR", status(410, "Expired"))
                return
            fresh = [entry for entry in self._log if entry[0] > seen]
            if fresh:
                seen = fresh[-1][0]
                yield b"".join(_line(type_, obj) for _, type_, obj in fresh)
            stream.wake.clear()
            if seen == self.revision:
                await stream.wake.wait()


class _FakeStream:
    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.failure: TransportError | None = None
        self.is_over = False


def _line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
