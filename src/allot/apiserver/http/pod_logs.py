"""pods/log: what simulated containers have printed, and with `follow` what they go on to print."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

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
    Run,
    chosen_container,
    find_run,
    log_bytes,
    may_be_long,
    printed_lines,
    selected_lines,
)
from allot.apiserver.pacing import LARGE, Workers
from allot.apiserver.registry.reading import Reader

TEXT: Final = "text/plain"
FOLLOW_SECONDS: Final = 1.0
MAX_RECENT: Final = 32
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

    def __init__(self, reader: Reader, clock: Callable[[], datetime], workers: Workers) -> None:
        self._reader = reader
        self._clock = clock
        self._workers = workers
        self._recent: dict[Any, bytes] = {}
        """What logs have printed in one second: for all who follow them."""

    async def read(self, request: ApiRequest, target: Target) -> Response:
        """The log until now."""
        text, _ = await self._printed(request, target, None)
        return Response(200, text, TEXT)

    async def follow(self, request: ApiRequest, target: Target) -> LogFollower:
        """The log until now, and what follows. Refused at once if there is no such log."""
        now = _tick(self._now())
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
                after, now = now, _tick(self._now())
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
        size = LARGE + 1 if may_be_long(pod, container) else 0
        if after is not None:
            now = now if run.end is None else max(now, run.end)
            key = (pod.metadata.uid, container, run, options.timestamps, after, now)
            text = self._recent.get(key)
            if text is None:
                work = partial(_new_text, pod, container, run, now, after, options)
                text = self._recent[key] = await self._workers.run(size, work)
                while len(self._recent) > MAX_RECENT:
                    del self._recent[next(iter(self._recent))]
            return text, run.end is None
        text = await self._workers.run(size, partial(_text, pod, container, run, now, options))
        return text, run.end is None

    async def _pod(self, target: Target) -> Pod:
        key = ObjectKey(target.namespace, target.name)
        stored = await self._reader.get(target.resource, key, "")
        found = stored.object
        return found if isinstance(found, Pod) else Pod(found.data)


def _tick(now: datetime) -> datetime:
    """All who follow a log get what a whole second has printed, so that it is computed once."""
    return now.replace(microsecond=0)


def _text(pod: Pod, container: str, run: Run, now: datetime, options: LogOptions) -> bytes:
    return log_bytes(selected_lines(printed_lines(pod, container, run, now), options), options)


def _new_text(
    pod: Pod, container: str, run: Run, now: datetime, after: datetime, options: LogOptions
) -> bytes:
    lines = printed_lines(pod, container, run, now, after)
    return log_bytes(lines, options._replace(limit_bytes=None))
