"""pods/log: what simulated containers have printed, and with `follow` what they go on to print."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from allot.api.core import Pod
from allot.api.decoding import go_time_problem
from allot.api.identities import ObjectKey
from allot.api.times import read_time
from allot.apiserver import api_errors
from allot.apiserver.http.log_texts import LogTexts
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
from allot.apiserver.pacing import Workers
from allot.apiserver.registry.reading import Reader
from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid

TEXT: Final = "text/plain"
FOLLOW_SECONDS: Final = 1.0
CACHED: Final = "0"
"""The version of a read that the cache answers, however old it is."""
TOO_MANY: Final = 429
NO_LOG: Final = Response(204, b"", "")
POSITIVE: Final = "must be greater than 0"
NO_PROCESSES: Final = "containers of simulated nodes run no processes"
NO_KUBELET: Final = "kubelets of simulated nodes serve no HTTP"


def no_connection(part: str, kind: str, name: str, reason: str) -> api_errors.ApiError:
    """The answer to exec, attach, port-forward and proxy."""
    return api_errors.bad_request(f"{part} is not available for {kind} {name}: {reason}")


def log_options(request: ApiRequest, name: str, now: datetime) -> LogOptions:
    """What a request for the log of a pod asks for; 422 if that makes no sense."""
    seconds, since = _number(request, "sinceSeconds"), _time(request, "sinceTime")
    tail, limit = _number(request, "tailLines"), _number(request, "limitBytes")
    errors = list(_option_errors(tail, limit, seconds, since, has_stream="stream" in request.query))
    if errors:
        raise api_errors.invalid("", "PodLogOptions", name, errors)
    if seconds is not None:
        since = now - timedelta(seconds=seconds)
    return LogOptions(
        request.query.get("container", ""),
        request.flag("previous"),
        request.flag("timestamps"),
        tail,
        since,
        limit,
    )


def _option_errors(
    tail: int | None,
    limit: int | None,
    seconds: int | None,
    since: datetime | None,
    *,
    has_stream: bool,
) -> Iterator[FieldError]:
    if tail is not None and tail < 0:
        yield invalid(FieldPath("tailLines"), tail, NOT_NEGATIVE)
    if limit is not None and limit < 1:
        yield invalid(FieldPath("limitBytes"), limit, POSITIVE)
    if seconds is not None and since is not None:
        yield forbidden(
            FieldPath("[]"), "at most one of `sinceTime` or `sinceSeconds` may be specified"
        )
    elif seconds is not None and seconds < 1:
        yield invalid(FieldPath("sinceSeconds"), seconds, POSITIVE)
    if has_stream:
        yield forbidden(FieldPath("stream"), "may not be specified")


def _number(request: ApiRequest, name: str) -> int | None:
    """A parameter that is a number also if it is empty: none."""
    if request.query.get(name) == "":
        raise api_errors.bad_request('strconv.ParseInt: parsing "": invalid syntax')
    return request.number(name)


def _time(request: ApiRequest, name: str) -> datetime | None:
    text = request.query.get(name)
    found = read_time(text)
    if text and found is None:
        raise api_errors.bad_request(f'parsing time "{text}"{go_time_problem(text)}')
    return found


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
        self._texts = LogTexts(workers)

    async def read(self, request: ApiRequest, target: Target) -> Response:
        """The log until now; 204 if the pod has no node yet."""
        text, _ = await self._printed(request, target, None, _tick(self._now()))
        return NO_LOG if text is None else Response(200, text, TEXT)

    async def follow(self, request: ApiRequest, target: Target) -> LogFollower | Response:
        """The log until now, and what follows. Refused at once if there is no such log."""
        now = _tick(self._now())
        begun, is_open = await self._printed(request, target, None, now)
        if begun is None:
            return NO_LOG
        first = begun

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
                except api_errors.ApiError as error:
                    if error.code != TOO_MANY:
                        return  # the pod is gone
                    text, now = b"", after
                if text:
                    yield text

        return LogFollower(chunks)

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC)

    async def _printed(
        self, request: ApiRequest, target: Target, after: datetime | None, now: datetime
    ) -> tuple[bytes | None, bool]:
        """The text, only lines after a moment if it is given; and whether the container still runs.

        None if the pod has no node yet.
        """
        options = log_options(request, target.name, now)
        pod = await self._pod(target, "" if after is None else CACHED)
        try:
            container = chosen_container(pod, options)
            if not pod.node_name:
                return None, False
            run = find_run(pod, container, previous=options.previous)
        except LogRefusedError as error:
            raise api_errors.bad_request(str(error)) from None
        if run is None:
            return b"", False
        if after is not None:
            now = now if run.end is None else max(now, run.end)
            options = LogOptions(timestamps=options.timestamps)
        key = (pod.metadata.uid, pod.metadata.resource_version, container, run, options, after, now)
        compute = partial(_text, pod, container, run, now, after, options)
        is_long = may_be_long(pod, container)
        text = await self._texts.get(request.user.name, key, compute, is_long=is_long)
        return text, run.end is None

    async def _pod(self, target: Target, version: str) -> Pod:
        key = ObjectKey(target.namespace, target.name)
        stored = await self._reader.get(target.resource, key, version)
        found = stored.object
        return found if isinstance(found, Pod) else Pod(found.data)


def _tick(now: datetime) -> datetime:
    """All who read a log get what whole seconds have printed, so that it is computed once for them."""
    return now.replace(microsecond=0)


def _text(
    pod: Pod,
    container: str,
    run: Run,
    now: datetime,
    after: datetime | None,
    options: LogOptions,
) -> bytes:
    return log_bytes(
        selected_lines(printed_lines(pod, container, run, now, after), options), options
    )
