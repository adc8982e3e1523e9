"""Quotas are charged in short stretches. Counted in turns of the event loop, not in seconds."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from typing import Any

from allot.apiserver.admission import resource_quota
from allot.apiserver.pacing import LARGE, Pacer
from allot.apiserver.watch_cache.representations import REPRESENTATIONS
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.quota import claims
from allot.quota.decisions import Charge
from allot.testing.manifests import a_claim_manifest, a_pod_manifest
from allot.testing.servers import LocalServer

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


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


def test_device_classes_are_looked_through_once_for_many_claims(monkeypatch: Any) -> None:
    looked: list[int] = []
    extended = claims.extended_resource_names

    def noted(classes: Any) -> dict[str, str]:
        looked.append(len(classes))
        return extended(classes)

    monkeypatch.setattr(claims, "extended_resource_names", noted)

    async def main() -> None:
        async with LocalServer() as server:
            await server.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})
            for number in range(3):
                await server.post(CLASSES, {"metadata": {"name": f"c{number}"}, "spec": {}})
            for number in range(5):
                await server.post(CLAIMS, a_claim_manifest(name=f"a{number}"))
            assert looked == [3]
            await server.post(CLASSES, {"metadata": {"name": "c3"}, "spec": {}})
            for number in range(5):
                await server.post(CLAIMS, a_claim_manifest(name=f"b{number}"))
            assert looked == [3, 4]

    asyncio.run(main())


def test_the_large_pod_of_a_claim_is_read_in_a_thread(monkeypatch: Any) -> None:
    threads: list[str] = []
    decoded = StoredObject._decoded

    def noted(self: StoredObject) -> Any:
        if "/pods/" in self.key:
            threads.append(threading.current_thread().name)
        return decoded(self)

    monkeypatch.setattr(StoredObject, "_decoded", noted)

    async def main() -> None:
        async with LocalServer() as server:
            await server.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})
            manifest = a_pod_manifest("p")
            manifest["metadata"]["annotations"] = {"long": "x" * LARGE}
            pod = await server.post(PODS, manifest)
            REPRESENTATIONS.discard(lambda _: True)
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
            claim = a_claim_manifest(name="a")
            claim["metadata"]["ownerReferences"] = [{**owner, "uid": pod["metadata"]["uid"]}]
            await server.post(CLAIMS, claim)
            assert set(threads) == {"apiserver-worker"}

    asyncio.run(main())
