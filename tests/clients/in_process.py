"""An API server without a socket: requests go straight into its ASGI application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric import ec

from allot.apiserver.assembly import ApiServer
from allot.apiserver.auth.authentication import AUTHENTICATED, MASTERS, StaticTokens, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.features import with_overrides
from allot.storage.memory import MemoryStore

TOKEN = "the-admin"  # noqa: S105
ADMIN = User("admin", groups=(MASTERS, AUTHENTICATED))


class Answer(NamedTuple):
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class InProcessServer:
    """A server on a memory store, with an event loop of its own that only runs during requests."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.store = MemoryStore()
        self.server = ApiServer(
            self.store,
            with_overrides({}),
            [StaticTokens({TOKEN: ADMIN})],
            ServiceAccountTokens(ec.generate_private_key(ec.SECP256R1())),
        )

    def __enter__(self) -> Self:
        self._runner.run(self.server.start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._runner.run(self.server.close())
        self._runner.run(self.store.close())
        self._runner.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = b"",
        content_type: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
        token: str | None = TOKEN,
    ) -> Answer:
        """The answer to one request. `path` may have a query; a body that is not bytes goes as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: list[tuple[str, str]] = list((headers or {}).items())
        if content_type is not None and raw:
            sent.append(("content-type", content_type))
        if token is not None:
            sent.append(("authorization", f"Bearer {token}"))
        encoded = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in sent
        ]
        place, _, query = path.encode("latin-1").partition(b"?")
        return self.request_raw(method, place, query, [raw], encoded)

    def request_raw(
        self,
        method: str,
        path: bytes,
        query: bytes,
        chunks: Sequence[bytes],
        headers: Sequence[tuple[bytes, bytes]],
    ) -> Answer:
        """The answer to a request whose every byte is given. Watches end at once: their client left."""
        scope = _scope(method, path, query, headers)
        incoming: list[dict[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
        ]
        incoming += [{"type": "http.request", "body": b""}, GONE]
        start, *bodies = self._runner.run(_exchange(self.server, scope, incoming))
        shown = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], shown, b"".join(message["body"] for message in bodies))

    def cut_off(self, method: str, path: str, body: bytes) -> int:
        """The number of messages that answer a client which leaves before its body is complete."""
        headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
        scope = _scope(method, path.encode(), b"", headers)
        part: dict[str, Any] = {"type": "http.request", "body": body, "more_body": True}
        return len(self._runner.run(_exchange(self.server, scope, [part, GONE])))

    def stored(self) -> dict[str, bytes]:
        """Every key of the store, the server's own included, and its bytes."""
        page = self._runner.run(self.store.list(""))
        return {entry.key: entry.value for entry in page.entries}


GONE: Final[dict[str, Any]] = {"type": "http.disconnect"}


def _scope(
    method: str, path: bytes, query: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "headers": list(headers),
    }


async def _exchange(
    server: ApiServer, scope: dict[str, Any], incoming: list[dict[str, Any]]
) -> list[Any]:
    """What the application sends when it gets these messages; the last one again and again."""
    outgoing: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if len(incoming) > 1 else incoming[0]

    async def send(message: Any) -> None:
        outgoing.append(message)

    async with asyncio.timeout(120):
        await server.app(scope, receive, send)
    return outgoing
