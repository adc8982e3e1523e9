"""No claim's status gives away a device that another claim holds (DESIGN: what must always hold, 1)."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.apiserver import device_holders
from allot.testing.servers import Answer, LocalServer

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DRIVER = "gpu.example.com"
SHARES = [f"00000000-0000-0000-0000-00000000000{digit}" for digit in range(10)]


def a_claim(name: str) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def a_result(device: str = "gpu-0", **more: Any) -> dict[str, Any]:
    return {"request": "r", "driver": DRIVER, "pool": "p", "device": device, **more}


def a_share(number: int, memory: str, device: str = "gpu-0") -> dict[str, Any]:
    return a_result(device, shareID=SHARES[number], consumedCapacity={"memory": memory})


SLICE: dict[str, Any] = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "allowMultipleAllocations": True,
                "capacity": {"memory": {"value": "8Gi"}},
            }
        ],
    },
}


async def allocate(server: LocalServer, name: str, *results: dict[str, Any]) -> Answer:
    status = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    claim = await server.get(f"{CLAIMS}/{name}")
    return await server.ask("PUT", f"{CLAIMS}/{name}/status", {**claim, "status": status})


async def claims(server: LocalServer, *names: str) -> None:
    for name in names:
        await server.post(CLAIMS, a_claim(name))


async def records(server: LocalServer) -> list[str]:
    page = await server.store.list(device_holders.PREFIX)
    return [entry.key for entry in page.entries]


def test_an_exclusive_device_goes_to_one_claim_only() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await claims(server, "a", "b")
            assert (await allocate(server, "a", a_result())).code == 200
            refused = await allocate(server, "b", a_result())
            assert (refused.code, refused.json["reason"]) == (409, "Conflict")
            assert (
                'device gpu.example.com/p/gpu-0 is already allocated to claim "default/a"'
                in (refused.json["message"])
            )
            assert "status" not in {
                name for name, value in (await server.get(f"{CLAIMS}/b")).items() if value
            }
            assert (await allocate(server, "b", a_result("gpu-1"))).code == 200

    asyncio.run(run())


def test_a_device_is_free_again_when_its_claim_is_deallocated_or_deleted() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await claims(server, "a", "b", "c")
            await allocate(server, "a", a_result())
            assert (await allocate(server, "a")).code == 200
            assert (await allocate(server, "b", a_result())).code == 200
            await server.ask("DELETE", f"{CLAIMS}/b")
            assert (await allocate(server, "c", a_result())).code == 200
            await server.ask("DELETE", f"{CLAIMS}/c")
            assert await records(server) == []

    asyncio.run(run())


def test_a_claim_that_waits_for_a_finalizer_keeps_its_device() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            held = a_claim("a")
            held["metadata"]["finalizers"] = ["example.com/hold"]
            await server.post(CLAIMS, held)
            await claims(server, "b")
            await allocate(server, "a", a_result())
            await server.ask("DELETE", f"{CLAIMS}/a")
            assert (await allocate(server, "b", a_result())).code == 409
            gone = {"metadata": {"finalizers": None}}
            await server.ask(
                "PATCH", f"{CLAIMS}/a", gone, content_type="application/merge-patch+json"
            )
            assert (await allocate(server, "b", a_result())).code == 200

    asyncio.run(run())


def test_shares_may_not_consume_more_than_there_is() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b", "c")
            assert (await allocate(server, "a", a_share(0, "5Gi"))).code == 200
            refused = await allocate(server, "b", a_share(1, "4Gi"))
            assert refused.code == 409
            assert (
                'capacity "memory" of 8Gi; 5Gi of it is consumed by claim "default/a"'
                in (refused.json["message"])
            )
            assert (await allocate(server, "b", a_share(1, "3Gi"))).code == 200
            assert (await allocate(server, "c", a_result())).code == 409, "shares are in use"
            await allocate(server, "a")
            await allocate(server, "b")
            assert (await allocate(server, "c", a_result())).code == 200
            assert (await allocate(server, "a", a_share(2, "1Gi"))).code == 409, (
                "all of it is taken"
            )

    asyncio.run(run())


def test_one_claim_alone_may_not_consume_more_than_there_is() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a")
            refused = await allocate(server, "a", a_share(0, "5Gi"), a_share(1, "5Gi"))
            assert refused.code == 409
            assert "nobody else uses it" in refused.json["message"]

    asyncio.run(run())


def test_admin_access_holds_nothing() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
            await server.ask(
                "PATCH",
                "/api/v1/namespaces/default",
                label,
                content_type="application/merge-patch+json",
            )
            watching = a_claim("admin")
            watching["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
            await server.post(CLAIMS, watching)
            await claims(server, "a")
            await allocate(server, "a", a_result())
            assert (await allocate(server, "admin", a_result(adminAccess=True))).code == 200
            assert len(await records(server)) == 1

    asyncio.run(run())


def test_claims_that_race_for_a_device_get_it_once() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            names = [f"c{number}" for number in range(20)]
            await claims(server, *names)
            answers = await asyncio.gather(*(allocate(server, name, a_result()) for name in names))
            assert sorted(answer.code for answer in answers) == [200] + [409] * 19

    asyncio.run(run())


def test_two_servers_on_one_store_do_not_both_give_it_away() -> None:
    async def run() -> None:
        async with LocalServer() as one:
            two = LocalServer(one.store)
            await two.server.start()
            names = [f"c{number}" for number in range(10)]
            await claims(one, *names)
            answers = await asyncio.gather(
                *(allocate((one, two)[n % 2], name, a_result()) for n, name in enumerate(names))
            )
            await two.server.close()
            assert sorted(answer.code for answer in answers) == [200] + [409] * 9

    asyncio.run(run())
