"""An API server on a socket: TLS, connections, a shutdown that ends in time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import uvicorn

from allot.apiserver.auth.credentials import Credentials
from allot.apiserver.http.app import App
from allot.apiserver.http.connections import ConnectionLimits, Connections, Slot
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.protocol import ServerProtocol
from allot.apiserver.http.request_tasks import RequestTasks
from allot.apiserver.log_aggregation import Notice

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
ACCEPT_BATCH: Final = 16
"""Connections that are accepted before the event loop runs other tasks."""
HANDSHAKE_BATCH: Final = 8
"""TLS handshakes that begin before the event loop runs other tasks; each takes about half a millisecond."""
ACCEPT_PAUSE_SECONDS: Final = 0.2
RECEIVE_BUFFER: Final = 32 * 1024
"""What one connection can have received before it is read, about. It bounds what one connection decrypts before others
are served: with the kernel's default, 200 uploads that begin at once keep the event loop busy for 150 ms."""
DRAIN_SECONDS: Final = 1.5
"""How long requests under way have when the server stops."""
CANCEL_SECONDS: Final = 0.3
CLOSE_NOTIFY_TIMEOUT_SECONDS: Final = 0.2
POLL_SECONDS: Final = 0.05
MAX_CONNECTIONS: Final = 4096
RESERVED_FILES: Final = 128
"""File descriptors for storage, logs and the like; a third of them where there are few."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def raise_file_limit() -> int:
    """Use as many file descriptors as we may; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # some systems say more than they allow
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


def connections_for(files: int, most: int = MAX_CONNECTIONS) -> int:
    """How many connections so many file descriptors are good for."""
    return max(1, min(most, files - min(RESERVED_FILES, files // 3)))


NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, for which the ssl module has no name."""


class Server(uvicorn.Server):
    """uvicorn, with our own connections; signals are handled by the caller."""

    def __init__(
        self, app: App, credentials: Credentials, limits: ConnectionLimits, metrics: Metrics
    ) -> None:
        config = uvicorn.Config(
            app,
            http=ServerProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=credentials.cert_file,
            ssl_keyfile=credentials.key_file,
            ssl_ca_certs=str(credentials.ca_file),
            ssl_cert_reqs=ssl.CERT_OPTIONAL,
        )
        super().__init__(config)
        self._app = app
        self._tasks = RequestTasks()
        if not config.loaded:
            config.load()
        assert config.ssl is not None
        # Who comes with an expired certificate is answered with 401, not cut off.
        config.ssl.verify_flags |= NO_CHECK_TIME
        self._limits = limits
        self._connections = Connections(limits, metrics)
        self._acceptors: list[_Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Finish what is under way and return from `serve`."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in sockets or ():
            acceptor = _Acceptor(listener, self._connections, self._protocol, self.config.ssl)
            acceptor.start()
            self._acceptors.append(acceptor)
        self.started = True

    def _protocol(self, slot: Slot) -> ServerProtocol:
        return ServerProtocol(
            self._connections,
            slot,
            self._app,
            self._tasks,
            config=self.config,
            server_state=self.server_state,
            app_state={},
        )

    async def on_tick(self, counter: int) -> bool:
        self._connections.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end, for a while; then end them."""
        state = self.server_state
        for acceptor in self._acceptors:
            acceptor.close()
        for listener in sockets or ():
            listener.close()
        for connection in tuple(state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        started = loop.time()
        while (state.connections or self._tasks.busy) and loop.time() < started + DRAIN_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            self._connections.sweep()
            if loop.time() > started + CLOSE_NOTIFY_TIMEOUT_SECONDS:
                self._hang_up()
        if self._tasks.busy:
            log.warning(
                "%d requests have not ended within %g s and are given up",
                len(self._tasks.busy),
                DRAIN_SECONDS,
            )
        self._connections.end_all("shutdown")
        tasks = tuple(self._tasks.busy)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
        self._tasks.close()

    def _hang_up(self) -> None:
        """Close connections of clients that received everything but do not answer close_notify of TLS."""
        for connection in tuple(self.server_state.connections):
            transport: Any = connection.transport
            if transport.is_closing() and not transport.get_write_buffer_size():
                transport.abort()


class _Acceptor:
    """Takes connections from one listening socket, as long as there is room for them."""

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        make_protocol: Callable[[Slot], ServerProtocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._make_protocol = make_protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._silent: dict[socket.socket, Slot] = {}
        """Connections that have not sent anything."""
        self._ready: deque[tuple[socket.socket, Slot]] = deque()
        """Connections whose ClientHello has arrived."""
        self._starting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._notice = Notice(log)

    def start(self) -> None:
        self._listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        self._is_closed = True
        self._loop.remove_reader(self._listener)
        if self._starting is not None:
            self._starting.cancel()
        for handshake in self._handshakes:
            handshake.cancel()
        for client, slot in [*self._silent.items(), *self._ready]:
            self._loop.remove_reader(client)
            self._drop(client, slot)

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPT_BATCH):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Out of file descriptors or memory. Those who wait stay in the backlog for a moment.
                self._notice.warn(f"connections cannot be accepted: {error.strerror}")
                self._connections.evict()
                self._loop.remove_reader(self._listener)
                self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)
                return
            slot = self._connections.admit(address[0], partial(_cut, client))
            if slot is None:
                client.close()
                continue
            client.setblocking(False)
            self._silent[client] = slot
            self._loop.add_reader(client, self._speaks, client)

    def _speaks(self, client: socket.socket) -> None:
        """A client begins its handshake, or has hung up, which the handshake finds out."""
        self._loop.remove_reader(client)
        self._ready.append((client, self._silent.pop(client)))
        if self._starting is None or self._starting.done():
            self._starting = self._loop.create_task(self._start_handshakes())

    async def _start_handshakes(self) -> None:
        """A few at a time: hundreds in one step of the loop would hold up all requests."""
        while self._ready:
            for _ in range(min(HANDSHAKE_BATCH, len(self._ready))):
                client, slot = self._ready.popleft()
                handshake = self._loop.create_task(self._establish(client, slot))
                self._handshakes.add(handshake)
                handshake.add_done_callback(partial(self._ended, client, slot))
            await asyncio.sleep(0)

    async def _establish(self, client: socket.socket, slot: Slot) -> None:
        limits = self._connections.limits
        protocol = self._make_protocol(slot)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=self._tls,
                # Slow clients are disconnected, and counted, by `Connections.sweep` before.
                ssl_handshake_timeout=2 * limits.head_seconds if self._tls else None,
                ssl_shutdown_timeout=limits.closing_seconds if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):  # of TLS as well: it is not a client of ours
            if protocol.transport is not None:  # it must not lose its socket before it is closed
                protocol.transport.abort()
            self._drop(client, slot)
        except Exception:
            self._drop(client, slot)
            raise

    def _ended(self, client: socket.socket, slot: Slot, handshake: asyncio.Task[None]) -> None:
        self._handshakes.discard(handshake)
        if handshake.cancelled():  # before it began
            self._drop(client, slot)

    def _drop(self, client: socket.socket, slot: Slot) -> None:
        self._connections.gone(slot)
        client.close()


def _cut(client: socket.socket) -> None:
    """End a connection during its handshake; the task that awaits it is told."""
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
