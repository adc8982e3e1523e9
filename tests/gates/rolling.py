"""A cluster whose components are restarted one by one: only those whose gates change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from allot.apiserver.assembly import ApiServer
from allot.apiserver.auth.authentication import MASTERS, StaticTokens, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.client.client import Client
from allot.client.component_users import ComponentUser
from allot.client.in_process import InProcessTransport
from allot.components import ClusterParts, ClusterTime, Components
from allot.features import FeatureGates
from allot.storage.memory import MemoryStore
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.virtual_time import VirtualClock

_TOKEN: Final = "test-admin-token"  # noqa: S105 - of a server in this process


class RollingCluster(VirtualTimeCluster):
    """Components that are not restarted run on, and find another API server at the same place."""

    def __init__(self, settings: ClusterSettings) -> None:
        super().__init__(settings)
        self._clock = VirtualClock()
        self._users = [StaticTokens({_TOKEN: User("admin", groups=(MASTERS,))})]
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._clients: list[Client] = []
        self._components: dict[str, Components] = {}

    def restart(self, settings: ClusterSettings | None = None) -> None:
        self.run(self._roll(settings or self.settings))

    async def _roll(self, settings: ClusterSettings) -> None:
        before, self.settings = self.settings, settings
        self._resources.clear()
        if settings.gates != before.gates:
            await self._stop_server()
            await self._start_server()
        old, new = before.parts, settings.parts
        if new.scheduler_gates != old.scheduler_gates:
            await self._components["scheduler"].stop()
            await self._start_component("scheduler")
        if new.controller_gates != old.controller_gates:
            await self._components["controllers"].stop()
            await self._start_component("controllers")

    async def _start(self) -> None:
        self._store = MemoryStore()
        await self._start_server()
        for name in ("scheduler", "controllers", "nodes"):
            await self._start_component(name)
        self.client = self._new_client(_TOKEN, "allot-testing")

    async def _stop(self) -> None:
        for component in self._components.values():
            await component.stop()
        for client in self._clients:
            await client.close()
        await self._stop_server()

    async def _start_server(self) -> None:
        assert self._store is not None
        self._server = ApiServer(
            self._store,
            self.settings.gates,
            self._users,
            ServiceAccountTokens(self._key),
            clock=self._clock.whole_seconds,
        )
        await self._server.start()

    async def _stop_server(self) -> None:
        self._server.begin_shutdown()
        await self._server.close()

    async def _start_component(self, name: str) -> None:
        parts = self.settings.parts
        own: ClusterParts = {
            "scheduler": replace(parts, controllers=(), nodes=None),
            "controllers": replace(parts, scheduler=None, nodes=None),
            "nodes": replace(parts, scheduler=None, controllers=()),
        }[name]
        time = ClusterTime(self._clock, self._clock.now, self._clock.whole_seconds)
        gates: FeatureGates = self.settings.gates
        started = Components(self._new_client, own, gates, time)
        self._components[name] = started
        await started.start()

    def _new_client(self, user: ComponentUser | str, user_agent: str) -> Client:
        transport = InProcessTransport(self._answer, user, user_agent)
        client = Client(transport, clock=self._clock)
        self._clients.append(client)
        return client

    async def _answer(self, *request: Any) -> None:
        await self._server.app(*request)
