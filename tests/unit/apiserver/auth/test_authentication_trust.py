"""The ConfigMap that says whose client certificates are trusted."""

from __future__ import annotations

import asyncio

from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class KeptStore(MemoryStore):
    """Outlives its server, as a file would."""

    async def close(self) -> None:
        pass


def test_certificates_are_published_and_renewed() -> None:
    async def run() -> None:
        store = KeptStore()
        async with LocalServer(store, client_ca="first") as server:
            first = await server.get(TRUST)
            changed = {**first, "data": {**first["data"], "requestheader-client-ca-file": "other"}}
            assert (await server.ask("PUT", TRUST, changed)).code == 200
        async with LocalServer(store, client_ca="second") as server:
            second = await server.get(TRUST)
        async with LocalServer(store, client_ca="second") as server:
            again = await server.get(TRUST)

        assert first["data"] == {"client-ca-file": "first"}
        assert second["data"] == {
            "client-ca-file": "second",
            "requestheader-client-ca-file": "other",
        }
        assert second["metadata"]["uid"] == first["metadata"]["uid"]
        assert again == second

    asyncio.run(run())


def test_without_certificates_nothing_is_published() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            assert (await server.ask("GET", TRUST)).code == 404

    asyncio.run(run())
