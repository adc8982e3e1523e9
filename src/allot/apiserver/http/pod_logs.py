"""pods/log: what simulated containers have printed, and with `follow` what they go on to print."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.times import read_time
from allot.apiserver import api_errors
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import Response, StreamResponse
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.container_logs import (
    LogOptions,
    LogRefusedError,
    chosen_container,
    find_run,
    log_bytes,
    printed_lines,
    selected_lines,
)
from allot.apiserver.registry.reading import Reader

TEXT: Final = "text/plain"
FOLLOW_SECONDS: Final = 1.0
NO_PROCESSES: Final = "containers of simulated nodes run no processes"
NO_KUBELET: Final = "kubelets of simulated nodes serve no HTTP"


def no_connection(part: str, kind: str, name: str, reason: str) -> api_errors.ApiError:
    """The answer to exec, attach, port-forward and proxy."""
    return api_errors.bad_request(f"{part} is not available for {kind} {name}: {reason}")


def log_options(request: ApiRequest, now: datetime) -> LogOptions:
    since = read_time(request.query.get("sinceTime"))
    seconds = request.number("sinceSeconds")
    if seconds is not None:
        if seconds < 1:
            raise api_errors.bad_request("sinceSeconds must be greater than 0")
        since = now - timedelta(seconds=seconds)
    tail, limit = request.number("tailLines"), request.number("limitBytes")
    if tail is not None and tail < 0:
        raise api_errors.bad_request("tailLines must be greater than or equal to 0")
    if limit is not None and limit < 1:
        raise api_errors.bad_request("limitBytes must be greater than 0")
    return LogOptions(
        request.query.get("container", ""),
        request.flag("previous"),
        request.flag("timestamps"),
        tail,
        since,
        limit,
    )


class LogFollower:
    """Sends new lines until the container has ended, or the client has gone."""

    def __init__(self, chunks: Callable[[asyncio.Event], AsyncIterator[bytes]]) -> None:
        self._stopped = asyncio.Event()
        self.response = StreamResponse(chunks(self._stopped), TEXT)

    def stop(self) -> None:
        self._stopped.set()


class PodLogs:
    """Reads logs from pods and the clock."""

    def __init__(self, reader: Reader, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._clock = clock

    async def read(self, request: ApiRequest, target: Target) -> Response:
        """The log until now."""
        text, _ = await self._printed(request, target, None)
        return Response(200, text, TEXT)

    async def follow(self, request: ApiRequest, target: Target) -> LogFollower:
        """The log until now, and what follows. Refused at once if there is no such log."""
        now = self._now()
        first, is_open = await self._printed(request, target, None, now)

        async def chunks(stopped: asyncio.Event) -> AsyncIterator[bytes]:
            nonlocal now, is_open
            yield first
            while is_open and not stopped.is_set():
                try:
                    async with asyncio.timeout(FOLLOW_SECONDS):
                        await stopped.wait()
                except TimeoutError:
                    pass
                after, now = now, self._now()
                try:
                    text, is_open = await self._printed(request, target, after, now)
                except api_errors.ApiError:
                    return  # the pod is gone
                if text:
                    yield text

        return LogFollower(chunks)

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC)

    async def _printed(
        self,
        request: ApiRequest,
        target: Target,
        after: datetime | None,
        now: datetime | None = None,
    ) -> tuple[bytes, bool]:
        """The text, only lines after a moment if it is given; and whether the container still runs."""
        now = now or self._now()
        options = log_options(request, now)
        pod = await self._pod(target)
        try:
            container = chosen_container(pod, options)
            run = find_run(pod, container, previous=options.previous)
        except LogRefusedError as error:
            raise api_errors.bad_request(str(error)) from None
        if run is None:
            return b"", False
        lines = printed_lines(pod, container, run, now)
        if after is None:
            return log_bytes(selected_lines(lines, options), options), run.end is None
        new = [line for line in lines if line.time > after]
        return log_bytes(new, options._replace(limit_bytes=None)), run.end is None

    async def _pod(self, target: Target) -> Pod:
        key = ObjectKey(target.namespace, target.name)
        stored = await self._reader.get(target.resource, key, "")
        found = stored.object
        return found if isinstance(found, Pod) else Pod(found.data)
