"""Calls of etcd's v3 API, with failover between endpoints.

Idempotent calls are retried on one endpoint after the other. A transaction is sent once: if its response is lost, the
outcome is unknown, and the caller gets `StoreUnavailableError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import grpc

from allot.backoff import Backoff
from allot.proto import etcd_pb2 as pb
from allot.storage.interface import StorageError, StoreFullError, StoreUnavailableError

DEFAULT_PORT: Final = 2379
MAX_REQUEST_BYTES: Final = 1536 * 1024
BACKOFF: Final = Backoff(initial_seconds=0.02, max_seconds=2.0)
LATE_SECONDS: Final = 2.0
"""Grace period after gRPC's own timeout, in case gRPC does not end a call."""

_CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.use_local_subchannel_pool", 1),
)
Result = TypeVar("Result")

_REFUSALS: Final = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE)


class TlsFiles(NamedTuple):
    """CA, client certificate and key. The system's CAs by default."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        def read(path: Path | None) -> bytes | None:
            return None if path is None else path.read_bytes()

        try:
            return grpc.ssl_channel_credentials(
                read(self.authority), read(self.key), read(self.certificate)
            )
        except OSError as error:
            raise StorageError(f"{error.filename} cannot be read: {error.strerror}") from error


class RefusedError(StorageError):
    """etcd rejected the request."""


class Endpoint:
    """One etcd server and its methods."""

    def __init__(self, url: str, tls: TlsFiles) -> None:
        self.url = url
        parts = urlsplit(url)
        try:
            port = parts.port or DEFAULT_PORT
        except ValueError:
            port = 0
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
            port = 0
        if not port:
            raise StorageError(f"{url!r} is not the URL of an etcd server, like http://HOST:2379")
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        target = f"{host}:{port}"
        if parts.scheme == "https":
            self.channel = grpc.aio.secure_channel(target, tls.credentials(), _CHANNEL_OPTIONS)
        else:
            self.channel = grpc.aio.insecure_channel(target, _CHANNEL_OPTIONS)
        self.range = self._unary("KV/Range", pb.RangeRequest, pb.RangeResponse)
        self.transact = self._unary("KV/Txn", pb.TxnRequest, pb.TxnResponse)
        self.compact = self._unary("KV/Compact", pb.CompactionRequest, pb.CompactionResponse)
        self.status = self._unary("Maintenance/Status", pb.StatusRequest, pb.StatusResponse)
        self.watch = self.channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )

    def _unary(self, method: str, request: Any, response: Any) -> Any:
        return self.channel.unary_unary(
            f"/etcdserverpb.{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )


class EtcdClient:
    """The endpoints of one etcd cluster."""

    def __init__(self, urls: Sequence[str], tls: TlsFiles, timeout_seconds: float) -> None:
        if not urls:
            raise StorageError("no etcd server is given: etcd:URL[,URL...]")
        self._endpoints = [Endpoint(url, tls) for url in urls]
        self._preferred = 0
        self.timeout_seconds = timeout_seconds

    async def range(self, request: pb.RangeRequest) -> pb.RangeResponse:
        response: pb.RangeResponse = await self._repeat("range", request)
        return response

    async def compact(self, request: pb.CompactionRequest) -> None:
        await self._repeat("compact", request)

    async def versions(self) -> dict[str, str]:
        """The etcd version of each endpoint that responds."""

        async def ask(endpoint: Endpoint) -> str:
            try:
                answer = await endpoint.status(
                    pb.StatusRequest(), timeout=self.timeout_seconds, wait_for_ready=True
                )
            except grpc.aio.AioRpcError:
                return ""
            return str(answer.version)

        answers = await asyncio.gather(*map(ask, self._endpoints))
        return {
            endpoint.url: version
            for endpoint, version in zip(self._endpoints, answers, strict=True)
            if version
        }

    async def transact(self, request: pb.TxnRequest) -> pb.TxnResponse:
        """Sent once. `StoreUnavailableError` if the outcome is unknown."""
        size = request.ByteSize()
        if size > MAX_REQUEST_BYTES:
            raise StorageError(f"a write of {size} bytes, etcd takes {MAX_REQUEST_BYTES}")
        endpoint = await self._ready_endpoint()
        try:
            async with asyncio.timeout(self.timeout_seconds + LATE_SECONDS):
                response: pb.TxnResponse = await endpoint.transact(
                    request, timeout=self.timeout_seconds
                )
        except grpc.aio.AioRpcError as error:
            if error.code() in _REFUSALS:
                raise RefusedError(f"etcd refuses: {error.details()}") from error
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "space" in _error_details(
                error
            ):
                raise StoreFullError(f"etcd has no space left: {error.details()}") from error
            self._turn_from(endpoint)
            raise StoreUnavailableError(f"{endpoint.url}: {_error_details(error)}") from error
        except TimeoutError:
            self._turn_from(endpoint)
            raise StoreUnavailableError(f"{endpoint.url}: no answer") from None
        return response

    @asynccontextmanager
    async def watch(
        self, request: pb.WatchCreateRequest
    ) -> AsyncIterator[AsyncIterator[pb.WatchResponse]]:
        """The responses of one watch stream. Raises `StoreUnavailableError` when it breaks."""
        endpoint = await self._ready_endpoint()
        # A server without a leader ends the stream, so that the watch moves to another one.
        call = endpoint.watch(metadata=(("hasleader", "true"),))

        async def responses() -> AsyncGenerator[pb.WatchResponse, None]:
            try:
                await call.write(pb.WatchRequest(create_request=request))
                async for response in call:
                    yield response
            except grpc.aio.AioRpcError as error:
                self._turn_from(endpoint)
                raise StoreUnavailableError(f"{endpoint.url}: {_error_details(error)}") from error
            raise StoreUnavailableError(f"{endpoint.url} ended the watch")

        stream = responses()
        try:
            yield stream
        finally:
            call.cancel()
            await stream.aclose()

    async def retry(self, attempt: Callable[[], Awaitable[Result]], failure: str) -> Result:
        """The result of an idempotent attempt, retried on other members until the timeout."""
        failures = 0
        details = "no answer"
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timeout_seconds):
                while True:
                    try:
                        return await attempt()
                    except StoreUnavailableError as error:
                        details = str(error)
                    failures += 1
                    await asyncio.sleep(BACKOFF.seconds(failures))
        raise StoreUnavailableError(f"{failure}: {details}")

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.channel.close()

    async def _repeat(self, method: str, request: Any) -> Any:
        """Call until an endpoint responds, or the timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_seconds
        failures = 0
        while True:
            endpoint = self._endpoints[self._preferred]
            share_seconds = min(
                self.timeout_seconds / len(self._endpoints), max(deadline - loop.time(), 0.01)
            )
            try:
                async with asyncio.timeout(share_seconds + LATE_SECONDS):
                    return await getattr(endpoint, method)(request, timeout=share_seconds)
            except (grpc.aio.AioRpcError, TimeoutError) as error:
                details = "no answer"
                if isinstance(error, grpc.aio.AioRpcError):
                    details = _error_details(error)
                    if error.code() in _REFUSALS:
                        raise RefusedError(details) from error
                self._turn_from(endpoint)
                failures += 1
                delay = BACKOFF.seconds(failures)
                if loop.time() + delay >= deadline:
                    raise StoreUnavailableError(f"{endpoint.url}: {details}") from error
            await asyncio.sleep(delay)

    async def _ready_endpoint(self) -> Endpoint:
        """A connected endpoint: after sending to it, a lost request may have taken effect."""
        failures = 0
        endpoint = self._endpoints[self._preferred]
        try:
            async with asyncio.timeout(self.timeout_seconds):
                while True:
                    endpoint = self._endpoints[self._preferred]
                    state = endpoint.channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.READY:
                        return endpoint
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        self._turn_from(endpoint)
                        failures += 1
                        await asyncio.sleep(BACKOFF.seconds(failures))
                    else:
                        await endpoint.channel.wait_for_state_change(state)
        except TimeoutError:
            raise StoreUnavailableError(f"{endpoint.url} cannot be reached") from None

    def _turn_from(self, endpoint: Endpoint) -> None:
        """Prefer the next endpoint, unless it changed already."""
        if self._endpoints[self._preferred] is endpoint:
            self._preferred = (self._preferred + 1) % len(self._endpoints)


def _error_details(error: grpc.aio.AioRpcError) -> str:
    return error.details() or str(error.code())
