"""Quotas are charged in short stretches. Counted in turns of the event loop, not in seconds."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from allot.apiserver.admission import resource_quota
from allot.apiserver.pacing import Pacer
from allot.quota.decisions import Charge
from allot.testing.manifests import a_pod_manifest
from allot.testing.servers import LocalServer

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
PODS = "/api/v1/namespaces/default/pods"


def test_many_quotas_do_not_keep_the_event_loop(monkeypatch: Any) -> None:
    charged: list[str] = []
    turns: list[int] = []
    charge_to = Charge.to

    def noted(self: Charge, quota: Any) -> Any:
        charged.append(quota.metadata.name)
        return charge_to(self, quota)

    monkeypatch.setattr(Charge, "to", noted)
    monkeypatch.setattr(resource_quota, "Pacer", lambda: Pacer(stretch=-1.0))

    async def note_turns() -> None:
        while True:
            turns.append(len(charged))
            await asyncio.sleep(0)

    async def main() -> None:
        async with LocalServer() as server:
            for number in range(20):
                manifest = {"metadata": {"name": f"q{number:02}"}, "spec": {"hard": {"pods": "5"}}}
                quota = await server.post(QUOTAS, manifest)
                quota["status"] = {"hard": {"pods": "5"}, "used": {"pods": "0"}}
                path = f"{QUOTAS}/q{number:02}/status"
                assert (await server.ask("PUT", path, quota)).code == 200
            charged.clear()
            noting = asyncio.create_task(note_turns())
            await server.post(PODS, a_pod_manifest("p"))
            noting.cancel()
            assert charged == [f"q{number:02}" for number in range(20)]
            assert max(after - before for before, after in pairwise(turns)) == 1
            quotas = (await server.get(QUOTAS))["items"]
            assert all(quota["status"]["used"] == {"pods": "1"} for quota in quotas)

    asyncio.run(main())
