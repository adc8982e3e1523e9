"""A whole cluster in one process: an API server and its components, without sockets between them.

For tests and for embedding. `allot up` has the components in a process of their own (decision 0013).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from allot.apiserver.assembly import ApiServer
from allot.apiserver.http.component_health import PARTS, ComponentHealth
from allot.apiserver.running import RunningServer, ServerOptions, running_server
from allot.client.client import Client
from allot.client.component_users import ComponentUser
from allot.client.in_process import InProcessTransport
from allot.components import REAL_TIME, ClusterParts, ClusterTime, Components
from allot.exposition_sharing import shared_exposition
from allot.features import FeatureGates


class Cluster:
    """A running API server, and its components in the same process."""

    def __init__(
        self,
        server: ApiServer,
        admin_token: str,
        parts: ClusterParts,
        gates: FeatureGates,
        times: ClusterTime = REAL_TIME,
        *,
        root_certificates: str = "",
        shares_informers: bool = True,
    ) -> None:
        self.server = server
        self._admin_token = admin_token
        self._time = times
        self.clients: list[Client] = []
        self.components = Components(
            self._component_client,
            parts,
            gates,
            times,
            root_certificates=root_certificates,
            shares_informers=shares_informers,
        )
        for name, registry in self.components.registries.items():
            server.metrics.others[name] = shared_exposition(registry).page
        for component, part in PARTS.items():
            server.component_checks.register(component, partial(self._health, part))

    def client(self, user_agent: str = "allot") -> Client:
        """A new client of the API server, as its admin."""
        transport = InProcessTransport(self.server.app, self._admin_token, user_agent)
        client = Client(transport, clock=self._time.clock)
        self.clients.append(client)
        return client

    def _component_client(self, user: ComponentUser, user_agent: str) -> Client:
        transport = InProcessTransport(self.server.app, user, user_agent)
        client = Client(transport, clock=self._time.clock)
        self.clients.append(client)
        return client

    async def _health(self, part: str) -> ComponentHealth:
        problem = self.components.problem_of(part)
        return ComponentHealth(not problem, problem or "ok")

    async def start(self) -> None:
        await self.components.start()

    async def stop(self) -> None:
        await self.components.stop()
        for client in self.clients:
            await client.close()


@asynccontextmanager
async def running_cluster(
    options: ServerOptions, parts: ClusterParts
) -> AsyncIterator[tuple[RunningServer, Cluster]]:
    """A cluster that runs until the end of the block. The components stop before the server."""
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(running_server(options))
        cluster = Cluster(
            running.server,
            running.credentials.admin_token,
            parts,
            options.gates,
            root_certificates=running.credentials.ca_file.read_text(encoding="ascii"),
        )
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        yield running, cluster
