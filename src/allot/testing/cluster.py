"""A whole control plane for tests of drivers and controllers, in the test's own process.

    in real time     a thread with an event loop and a socket: any client, in any language, can use it
    in virtual time  time passes only while a test waits, and then at once: minutes take milliseconds

Objects are stored in memory by default. Both are the same cluster as `allot up`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar

from cryptography.hazmat.primitives.asymmetric import ec

from allot.apiserver.assembly import ApiServer
from allot.apiserver.auth.authentication import MASTERS, StaticTokens, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.apiserver.running import ServerOptions
from allot.cluster import Cluster, running_cluster
from allot.components import ClusterTime
from allot.storage.memory import MemoryStore
from allot.testing.cluster_operations import AllotCluster
from allot.testing.errors import NotInRealTimeError, NotInVirtualTimeError
from allot.testing.settings import ClusterSettings
from allot.testing.virtual_time import VirtualClock, VirtualTimeLoop

__all__ = ["AllotCluster", "ClusterSettings", "RealTimeCluster", "VirtualTimeCluster"]

T = TypeVar("T")

_TOKEN: Final = "test-admin-token"  # noqa: S105 - of a local test server


class RealTimeCluster(AllotCluster):
    """Runs in its own thread, and listens on a free local port."""

    kubeconfig: Path
    url: str

    def __init__(
        self,
        directory: Path,
        settings: ClusterSettings = ClusterSettings(),  # noqa: B008 - a value
        storage: str = "memory",
    ) -> None:
        """`storage` is as for `allot up`. Memory does not survive a restart, `sqlite` in the directory does."""
        super().__init__(settings)
        self._directory, self._storage = directory, storage
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="allot", daemon=True)
        self._stack = AsyncExitStack()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def advance(self, seconds: float) -> NoReturn:
        """Only in virtual time."""
        __tracebackhide__ = True
        raise NotInRealTimeError("advance()")

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self._stop())
        self._end()

    async def _start(self) -> None:
        options = ServerOptions(self._directory, self.settings.gates, self._storage, port=0)
        running, cluster = await self._stack.enter_async_context(
            running_cluster(options, self.settings.parts)
        )
        self.kubeconfig, self.url = running.kubeconfig, running.url
        self.client = cluster.client("allot-testing")

    async def _stop(self) -> None:
        await self._stack.aclose()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class VirtualTimeCluster(AllotCluster):
    """Time passes only during calls, and waiting takes no real time.

    Stored objects survive a restart.
    """

    def __init__(self, settings: ClusterSettings = ClusterSettings()) -> None:  # noqa: B008 - a value
        super().__init__(settings)
        self._runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self._store: MemoryStore | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def advance(self, seconds: float) -> None:
        """Advance the virtual time."""
        self.run(asyncio.sleep(seconds))

    @property
    def kubeconfig(self) -> NoReturn:
        """Only in real time: other programs do not know of virtual time."""
        __tracebackhide__ = True
        raise NotInVirtualTimeError("kubeconfig")

    @property
    def url(self) -> NoReturn:
        """Only in real time."""
        __tracebackhide__ = True
        raise NotInVirtualTimeError("url")

    def _now(self) -> datetime:
        return self._clock.whole_seconds()

    def __enter__(self) -> Self:
        try:
            self.run(self._start())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self._stop())
        if self._store is not None:
            self.run(self._store.close())
        self._runner.close()

    async def _start(self) -> None:
        self._clock = clock = VirtualClock()
        self._store = self._store or MemoryStore()
        self._server = ApiServer(
            self._store,
            self.settings.gates,
            [StaticTokens({_TOKEN: User("admin", groups=(MASTERS,))})],
            ServiceAccountTokens(ec.generate_private_key(ec.SECP256R1())),
            clock=clock.whole_seconds,
            protects_volumes=True,
        )
        await self._server.start()
        time = ClusterTime(clock, clock.now, clock.whole_seconds)
        self._cluster = Cluster(
            self._server, _TOKEN, self.settings.parts, self.settings.gates, time
        )
        await self._cluster.start()
        self.client = self._cluster.client("allot-testing")

    async def _stop(self) -> None:
        await self._cluster.stop()
        await self._server.close()
