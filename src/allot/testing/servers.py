"""An API server in the test's own process, without a socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from allot import features
from allot.apiserver.admission.chain import AdmissionPlugin
from allot.apiserver.admission.creation_limits import CreationLimit
from allot.apiserver.assembly import ApiServer
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.auth.authentication import AUTHENTICATED, MASTERS, StaticTokens, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.apiserver.http.flow_control import FlowLimits
from allot.apiserver.http.http_exchange import TransferLimits
from allot.apiserver.kinds.resources import RESOURCES, Resource
from allot.client.wall_clock import wall_clock
from allot.features import FeatureGates
from allot.storage.interface import Store
from allot.storage.memory import MemoryStore

TOKEN = "test-admin-token"  # noqa: S105 - of a server without a socket

_signing_key = ec.generate_private_key(ec.SECP256R1())


class ServerResponse(NamedTuple):
    """The response to a request."""

    code: int
    headers: tuple[tuple[str, str], ...]
    content: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)

    def header(self, name: str) -> list[str]:
        return [value for found, value in self.headers if found == name]


class EventStream:
    """The events of an open watch."""

    def __init__(self) -> None:
        self.code = 0
        self.headers: dict[str, str] = {}
        self.started = asyncio.Event()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""
        self._lines: list[bytes] = []
        self.gone = asyncio.Event()
        self.reading = asyncio.Event()
        """While cleared, the client reads nothing."""
        self.reading.set()

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = {
                name.decode(): value.decode("latin-1") for name, value in message["headers"]
            }
            return
        self.started.set()
        await self.reading.wait()
        if message.get("body"):
            self._queue.put_nowait(message["body"])
        if not message.get("more_body"):
            self._queue.put_nowait(None)

    async def receive(self) -> dict[str, Any]:
        if not self.gone.is_set():
            await self.gone.wait()
        return {"type": "http.disconnect"}

    async def next(self, timeout: float = 60.0) -> dict[str, Any] | None:
        """The next event; None when the stream has ended."""
        async with asyncio.timeout(timeout):
            while not self._lines:
                chunk = await self._queue.get()
                if chunk is None:
                    self._queue.put_nowait(None)
                    return None
                *self._lines, self._rest = (self._rest + chunk).split(b"\n")
        event: dict[str, Any] = msgspec.json.decode(self._lines.pop(0))
        return event

    async def chunk(self, timeout: float = 60.0) -> bytes:
        """The next bytes of a stream that has no lines; none when it has ended."""
        async with asyncio.timeout(timeout):
            return await self._queue.get() or b""

    async def take(self, count: int) -> list[dict[str, Any]]:
        events = [await self.next() for _ in range(count)]
        assert None not in events
        return events  # type: ignore[return-value]


class LocalServer:
    """An `ApiServer`, and methods to send requests to it."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        gates: FeatureGates = features.DEFAULTS,
        users: Mapping[str, User] | None = None,
        plugins: Sequence[AdmissionPlugin] = (),
        resources: Sequence[Resource] = RESOURCES,
        window: int = 10_000,
        clock: Callable[[], datetime] = wall_clock,
        pool_status_limit: CreationLimit = CreationLimit(),  # noqa: B008 - a value
        flow_limits: FlowLimits = FlowLimits(),  # noqa: B008 - a value
        transfer_limits: TransferLimits = TransferLimits(),  # noqa: B008 - a value
        auditor: Auditor | None = None,
        client_ca: str = "",
        taints_new_nodes: bool = False,
        protects_volumes: bool = False,
    ) -> None:
        self.store = store or MemoryStore()
        admin = User("admin", groups=(MASTERS, AUTHENTICATED))
        self.server = ApiServer(
            self.store,
            gates,
            [StaticTokens({TOKEN: admin, **(users or {})})],
            ServiceAccountTokens(_signing_key),
            plugins=plugins,
            resources=resources,
            window=window,
            clock=clock,
            pool_status_limit=pool_status_limit,
            flow_limits=flow_limits,
            transfer_limits=transfer_limits,
            auditor=auditor,
            client_ca=client_ca,
            taints_new_nodes=taints_new_nodes,
            protects_volumes=protects_volumes,
        )

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()
        await self.store.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> ServerResponse:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {"authorization": f"Bearer {TOKEN}", **(headers or {})}
        if body is not None:
            given.setdefault("content-type", content_type)
        messages: list[Mapping[str, Any]] = []
        is_sent = False

        async def receive() -> dict[str, Any]:
            nonlocal is_sent
            if is_sent:
                await asyncio.Event().wait()  # the client stays
            is_sent = True
            return {"type": "http.request", "body": content if body is not None else b""}

        async def send(message: Mapping[str, Any]) -> None:
            messages.append(message)

        await self.server.app(_scope(method, path, query, given), receive, send)
        shown = tuple(
            (name.decode(), value.decode("latin-1")) for name, value in messages[0]["headers"]
        )
        content = b"".join(message.get("body", b"") for message in messages[1:])
        return ServerResponse(messages[0]["status"], shown, content)

    async def post(self, path: str, body: Any, **rest: Any) -> dict[str, Any]:
        """Create an object; asserts success."""
        answer = await self.ask("POST", path, body, **rest)
        assert answer.code == 201, answer
        created: dict[str, Any] = answer.json
        return created

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        answer = await self.ask("GET", path, query=query)
        assert answer.code == 200, answer
        found: dict[str, Any] = answer.json
        return found

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str] | None = None, **query: str
    ) -> AsyncIterator[EventStream]:
        stream = EventStream()
        given = {"authorization": f"Bearer {TOKEN}", **(headers or {})}
        scope = _scope("GET", path, {"watch": "true", **query}, given)
        task = asyncio.create_task(self.server.app(scope, stream.receive, stream.send))
        try:
            async with asyncio.timeout(5):
                await stream.started.wait()
            yield stream
        finally:
            stream.gone.set()
            async with asyncio.timeout(5):
                await task


def _scope(
    method: str, path: str, query: Mapping[str, str] | None, headers: Mapping[str, str]
) -> dict[str, Any]:
    path, _, written = path.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": (written or urlencode(query or {})).encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
