"""Answers that go on: watches, and logs that are followed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.http.exchange import ClientGoneError, Exchange, Receive
from allot.apiserver.http.flow_control import FlowControl
from allot.apiserver.http.handlers import Handlers
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.operations import Operation
from allot.apiserver.http.pod_logs import LogFollower
from allot.apiserver.http.request_state import RequestState
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import Response, StreamResponse
from allot.apiserver.http.routes import Target
from allot.apiserver.http.watching import Watcher
from allot.apiserver.kinds.definition import LOG
from allot.apiserver.pacing import Priority, begin_work

log = logging.getLogger(__name__)


class OpenStream(NamedTuple):
    """An answer that is ready to be sent, as long as it goes on."""

    name: str
    """For messages."""
    follower: Watcher | LogFollower
    response: StreamResponse
    sent: Callable[[int], None]
    """Counts bytes."""
    ended: Callable[[], None]


class Streams:
    """Opens and sends the streams of one server."""

    def __init__(
        self, handlers: Handlers, flow: FlowControl, metrics: Metrics, auditor: Auditor | None
    ) -> None:
        self._handlers = handlers
        self._flow = flow
        self._metrics = metrics
        self._auditor = auditor
        self._followers: set[Watcher | LogFollower] = set()
        self.is_closing = False

    def close(self) -> None:
        """Let all of them end, so that their clients come back to a server that lives."""
        self.is_closing = True
        for follower in tuple(self._followers):
            follower.stop()

    async def open(
        self,
        request: ApiRequest,
        target: Target,
        operation: Operation,
        exchange: Exchange,
        call: RequestState,
    ) -> Response | OpenStream:
        """The answer to a long-running request."""
        if target.subresource is LOG:
            return await self._log(request, target, exchange, call)
        return await self._watch(request, target, operation, exchange, call)

    async def _log(
        self, request: ApiRequest, target: Target, exchange: Exchange, call: RequestState
    ) -> Response | OpenStream:
        """Long-running, as in Kubernetes, with `follow` or without it: a log that takes long delays no other read."""
        if not exchange.is_in_process:
            call.long_running = self._flow.long_running(request.user)
        logs = self._handlers.logs
        if not request.flag("follow"):
            return await logs.read(request, target)
        follower = await logs.follow(request, target)
        if isinstance(follower, Response):
            return follower
        response = _held(follower.response, call)
        return OpenStream(
            f"log of {request.path}", follower, response, _count_nothing, _count_nothing
        )

    async def _watch(
        self,
        request: ApiRequest,
        target: Target,
        operation: Operation,
        exchange: Exchange,
        call: RequestState,
    ) -> OpenStream:
        is_near = exchange.is_in_process
        call.in_flight = in_flight = self._flow.request(
            request.user, operation.kind, exempt=is_near
        )
        if not is_near:
            call.long_running = self._flow.long_running(request.user)
            await begin_work(Priority.LIST)
        await in_flight.begin()
        watcher, response = await self._handlers.watch(request, target, operation)
        watcher.is_paced = not is_near
        if self._auditor is not None and call.audited is not None:
            self._auditor.started(call.audited)
        in_flight.end()  # it goes on without a seat
        labels = operation.labels
        self._metrics.requests.count_watch(labels)
        gauge = self._metrics.watchers.labels(*labels)
        gauge.inc()
        sent = self._metrics.watch_bytes.of(labels)
        name = f"watch of {request.path}"
        return OpenStream(name, watcher, _held(response, call), sent.add, gauge.dec)

    async def send(self, stream: OpenStream, exchange: Exchange) -> None:
        """Returns when it has ended, or its client is gone."""
        follower = stream.follower
        self._followers.add(follower)
        leaving = asyncio.create_task(_stop_when_gone(follower, exchange.receive))
        if self.is_closing:
            follower.stop()
        try:
            await exchange.stream(stream.response, stream.sent)
        except ClientGoneError:
            log.info("%s: the client takes nothing, giving it up", stream.name)
        except Exception:
            # The answer has begun and cannot become another. Cut off, the client asks again.
            log.exception("%s failed", stream.name)
            exchange.abort("error")
        finally:
            stream.ended()
            self._followers.discard(follower)
            leaving.cancel()


def _held(response: StreamResponse, call: RequestState) -> StreamResponse:
    """The stream, of which clients see what is durable, if they must not see more."""
    if call.durability is None:
        return response
    return response._replace(chunks=call.durability.of_chunks(response.chunks))


async def _stop_when_gone(follower: Watcher | LogFollower, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            follower.stop()
            return


def _count_nothing(*_: int) -> None:
    """Logs that are followed, and their bytes, are in no metric."""
