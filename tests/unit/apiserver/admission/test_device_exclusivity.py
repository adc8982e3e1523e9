"""No claim's status gives away a device that another claim holds (DESIGN: what must always hold, 1)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec

from allot.api.decoding import from_builtin, to_builtin
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.apiserver.admission import device_exclusivity
from allot.apiserver.admission.device_exclusivity import Holder, Record
from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.storage.interface import Put
from allot.testing.builders import DRIVER
from allot.testing.manifests import a_claim_manifest, a_request_manifest, a_slice_manifest
from allot.testing.servers import LocalServer, ServerResponse

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SHARES = [f"00000000-0000-0000-0000-00000000000{digit}" for digit in range(10)]


def claim_of_one(name: str, **exactly: Any) -> dict[str, Any]:
    return a_claim_manifest(a_request_manifest("r", **exactly), name=name)


def a_result(device: str = "gpu-0", **more: Any) -> dict[str, Any]:
    return {"request": "r", "driver": DRIVER, "pool": "p", "device": device, **more}


def a_share(number: int, memory: str, device: str = "gpu-0") -> dict[str, Any]:
    return a_result(device, shareID=SHARES[number], consumedCapacity={"memory": memory})


SLICE = a_slice_manifest(
    {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "8Gi"}},
    },
    name="s",
    node="n",
    pool={"name": "p"},
)


async def allocate(server: LocalServer, name: str, *results: dict[str, Any]) -> ServerResponse:
    status = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    claim = await server.get(f"{CLAIMS}/{name}")
    return await server.ask("PUT", f"{CLAIMS}/{name}/status", {**claim, "status": status})


async def claims(server: LocalServer, *names: str) -> None:
    for name in names:
        await server.post(CLAIMS, claim_of_one(name))


async def records(server: LocalServer) -> list[str]:
    page = await server.store.list(device_exclusivity.PREFIX)
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
            (cause,) = refused.json["details"]["causes"]
            assert cause == {
                "reason": "DeviceAlreadyAllocated",
                "message": "gpu.example.com/p/gpu-0",
                "field": "status.allocation.devices.results",
            }
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
            held = claim_of_one("a")
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


def test_claims_of_other_namespaces_are_not_named() -> None:
    """The scheduler repeats the message in events of its pod, which users of its namespace read."""

    async def run() -> None:
        async with LocalServer() as server:
            await server.post("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b")
            path = CLAIMS.replace("default", "team-a")
            secret = claim_of_one("secret") | {"metadata": {"name": "secret"}}
            created = await server.post(path, secret)
            results = [a_share(0, "5Gi")]
            created["status"] = {"allocation": {"devices": {"results": results}}}
            assert (await server.ask("PUT", f"{path}/secret/status", created)).code == 200
            assert (await allocate(server, "b", a_share(3, "1Gi"))).code == 200
            for result, told in (
                (a_result(), "already allocated in shares to a claim in another namespace"),
                (a_share(0, "1Gi"), "belongs to a claim in another namespace"),
                (a_share(1, "4Gi"), 'by claim "default/b" and a claim in another namespace'),
            ):
                refused = await allocate(server, "a", result)
                assert refused.code == 409
                assert told in refused.json["message"]
                assert "secret" not in refused.json["message"]

    asyncio.run(run())


def test_one_claim_alone_may_not_consume_more_than_there_is() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a")
            refused = await allocate(server, "a", a_share(0, "5Gi"), a_share(1, "5Gi"))
            assert refused.code == 409
            assert "no other claim consumes it" in refused.json["message"]

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
            await server.post(CLAIMS, claim_of_one("admin", adminAccess=True))
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


def slice_of_generation(generation: int, **device: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": generation}
    published = {"name": "gpu-0", **device}
    return a_slice_manifest(published, name=f"s{generation}", node="n", pool=pool)


def test_shares_of_a_device_that_is_dedicated_now_are_in_use() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b", "c")
            assert (await allocate(server, "a", a_share(0, "1Gi"))).code == 200
            await server.post(SLICES, slice_of_generation(2, capacity={"memory": {"value": "8Gi"}}))
            refused = await allocate(server, "b", a_share(1, "1Gi"))
            assert refused.code == 409, "a device that is no longer shareable"
            assert 'already allocated in shares to claim "default/a"' in refused.json["message"]
            assert (await allocate(server, "b", a_result())).code == 409
            await allocate(server, "a")
            assert (await allocate(server, "b", a_result())).code == 200
            shareable = slice_of_generation(3, allowMultipleAllocations=True)
            await server.post(SLICES, shareable)
            assert (await allocate(server, "c", a_result(shareID=SHARES[2]))).code == 409

    asyncio.run(run())


def test_shares_of_an_exclusive_device_go_to_one_claim_only() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, slice_of_generation(1))
            await claims(server, "a", "b")
            assert (await allocate(server, "a", a_result(shareID=SHARES[0]))).code == 200
            assert (await allocate(server, "b", a_result(shareID=SHARES[1]))).code == 409

    asyncio.run(run())


def test_no_share_is_added_to_a_capacity_that_shrank() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b")
            assert (await allocate(server, "a", a_share(0, "4Gi"))).code == 200
            less = {"memory": {"value": "2Gi"}}
            await server.post(
                SLICES, slice_of_generation(2, allowMultipleAllocations=True, capacity=less)
            )
            assert (await allocate(server, "b", a_share(1, "0"))).code == 409
            assert (await allocate(server, "a")).code == 200

    asyncio.run(run())


MEMORY = "status.allocation.devices.results[0].consumedCapacity[memory]"


def test_a_new_share_states_what_it_consumes() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b")
            missing = await allocate(server, "a", a_result(shareID=SHARES[0]))
            assert (missing.code, missing.json["reason"]) == (422, "Invalid")
            assert f"{MEMORY}: Required value" in missing.json["message"]
            negative = await allocate(server, "a", a_share(0, "-1Gi"))
            assert negative.code == 422
            assert f'{MEMORY}: Invalid value: "-1Gi": must not be neg' in negative.json["message"]
            assert (await allocate(server, "a", a_share(0, "1Gi"))).code == 200
            stolen = await allocate(server, "b", a_share(0, "1Gi"))
            assert stolen.code == 409
            assert 'belongs to claim "default/a"' in stolen.json["message"]

    asyncio.run(run())


def test_v1_38_takes_the_word_of_whoever_allocates() -> None:
    async def run() -> None:
        gates = DEFAULTS.with_rules(RuleSet.V1_38)
        async with LocalServer(gates=gates) as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a", "b", "c")
            assert (await allocate(server, "a", a_result(shareID=SHARES[0]))).code == 200
            assert (await allocate(server, "b", a_share(0, "-1Gi"))).code == 200
            assert (await allocate(server, "c", a_share(1, "8Gi"))).code == 200

    asyncio.run(run())


def test_a_stored_share_without_amounts_stays_valid_and_counts_in_full() -> None:
    async def run() -> None:
        async with LocalServer(gates=DEFAULTS.with_rules(RuleSet.V1_38)) as old:
            await old.post(SLICES, SLICE)
            await claims(old, "a", "b")
            await allocate(old, "a", a_result(shareID=SHARES[0]))
            new = LocalServer(old.store)
            await new.server.start()
            claim = await new.get(f"{CLAIMS}/a")
            consumer = {"resource": "pods", "name": "p", "uid": "1"}
            claim["status"]["reservedFor"] = [consumer]
            assert (await new.ask("PUT", f"{CLAIMS}/a/status", claim)).code == 200
            assert (await allocate(new, "b", a_share(1, "1Gi"))).code == 409
            await new.server.close()

    asyncio.run(run())


def test_a_device_with_very_many_shares_is_looked_at_in_a_thread(monkeypatch: Any) -> None:
    """And its shares are added up as integers: a quantity for every sum takes ten times as long."""
    threads: list[str] = []
    sums = 0
    changed, add = device_exclusivity.changed_records, Quantity.__add__

    def noted(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return changed(*args, **options)

    def counted(self: Quantity, other: Quantity) -> Quantity:
        nonlocal sums
        sums += 1
        return add(self, other)

    monkeypatch.setattr(device_exclusivity, "changed_records", noted)
    monkeypatch.setattr(Quantity, "__add__", counted)
    holders = tuple(
        Holder(f"other/c{index}", f"u{index}", f"s{index}", {"memory": Quantity.of(1)})
        for index in range(1_000)
    )

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(SLICES, SLICE)
            await claims(server, "a")
            key = device_exclusivity.record_key(DeviceId(DRIVER, "p", "gpu-0"))
            value = msgspec.json.encode(Record(holders=holders), enc_hook=to_builtin)
            await server.store.write(Put(key, value))
            assert (await allocate(server, "a", a_share(0, "1Gi"))).code == 200
            entry = await server.store.get(key)
            assert entry is not None
            written = msgspec.json.decode(entry.value, type=Record, dec_hook=from_builtin)
            assert len(written.holders) == 1_001

    asyncio.run(run())
    assert threads == ["apiserver-worker"]
    assert sums == 0
