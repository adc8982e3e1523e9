"""get and list: versions, pages, selectors, forms of answers."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import msgspec
import pytest

from allot.apiserver.registry.selection import Selection
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.testing.servers import LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def a_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def filled(server: LocalServer, count: int = 7) -> None:
    for number in range(count):
        await server.post(MAPS, a_map(f"m{number}", parity="even" if number % 2 == 0 else "odd"))


def test_pages_show_one_state_whatever_is_written_meanwhile() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server)
            first = await server.get(MAPS, limit="3")
            await server.post(MAPS, a_map("m1b"))
            await server.ask("DELETE", f"{MAPS}/m5")
            token = first["metadata"]["continue"]
            second = await server.get(MAPS, **{"limit": "3", "continue": token})
            third = await server.get(
                MAPS, **{"limit": "3", "continue": second["metadata"]["continue"]}
            )
        assert [names(page) for page in (first, second, third)] == [
            ["m0", "m1", "m2"],
            ["m3", "m4", "m5"],
            ["m6"],
        ]
        assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [
            4,
            1,
            None,
        ]
        assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
        assert "continue" not in third["metadata"]

    asyncio.run(run())


def test_pages_with_selectors_do_not_guess_what_remains() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server)
            first = await server.get(MAPS, limit="2", labelSelector="parity=even")
            token = first["metadata"]["continue"]
            await server.post(MAPS, a_map("x", parity="even"))
            rest = await server.get(
                MAPS, **{"labelSelector": "parity=even", "continue": token, "limit": "9"}
            )
        assert (names(first), names(rest)) == (["m0", "m2"], ["m4", "m6"])
        assert "remainingItemCount" not in first["metadata"]

    asyncio.run(run())


def test_pages_that_are_too_old_are_expired() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server)
            first = await server.get(MAPS, limit="2")
            await server.post(MAPS, a_map("x"))
            await server.store.compact(await server.store.revision())
            token = first["metadata"]["continue"]
            answer = await server.ask("GET", MAPS, query={"limit": "2", "continue": token})
        assert (answer.code, answer.json["reason"]) == (410, "Expired")

    asyncio.run(run())


def test_a_past_version_can_be_read_exactly() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server, 2)
            version = (await server.get(MAPS))["metadata"]["resourceVersion"]
            await server.ask("DELETE", f"{MAPS}/m0")
            exact = await server.get(MAPS, resourceVersion=version, resourceVersionMatch="Exact")
            newer = await server.get(
                MAPS, resourceVersion=version, resourceVersionMatch="NotOlderThan"
            )
        assert (names(exact), names(newer)) == (["m0", "m1"], ["m1"])
        assert exact["metadata"]["resourceVersion"] == version

    asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "code", "reason"),
    [
        pytest.param({"resourceVersion": "x"}, 400, "BadRequest", id="no-number"),
        pytest.param({"resourceVersion": "-1"}, 400, "BadRequest", id="negative"),
        pytest.param({"resourceVersion": "9" * 30}, 400, "BadRequest", id="huge"),
        pytest.param({"resourceVersion": "99999999"}, 504, "Timeout", id="future"),
        pytest.param({"resourceVersionMatch": "Exact"}, 422, "Invalid", id="match-without-version"),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            422,
            "Invalid",
            id="exactly-any",
        ),
        pytest.param({"resourceVersionMatch": "Newest"}, 422, "Invalid", id="unknown-match"),
        pytest.param({"limit": "many"}, 400, "BadRequest", id="limit"),
        pytest.param({"continue": "garbage"}, 400, "BadRequest", id="token"),
        pytest.param({"labelSelector": "a b"}, 400, "BadRequest", id="labels"),
        pytest.param({"fieldSelector": "data.k=v"}, 400, "BadRequest", id="fields"),
    ],
)
def test_bad_options(
    query: dict[str, str], code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allot.apiserver.registry.reading.WAIT_FOR_REVISION_SECONDS", 0.1)

    async def run() -> None:
        async with LocalServer() as server:
            answer = await server.ask("GET", MAPS, query=query)
            assert (answer.code, answer.json["reason"]) == (code, reason)

    asyncio.run(run())


def test_slices_and_pods_are_found_by_their_fields() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            for name, driver, node in (("a", "x.example.com", "n1"), ("b", "y.example.com", "n1")):
                pool = {"name": f"pool-{name}", "generation": 1, "resourceSliceCount": 1}
                await server.post(
                    "/apis/resource.k8s.io/v1/resourceslices",
                    {
                        "metadata": {"name": name},
                        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": []},
                    },
                )
            for version in ("v1", "v1beta2", "v1beta1"):
                path = f"/apis/resource.k8s.io/{version}/resourceslices"
                found = await server.get(path, fieldSelector="spec.driver=x.example.com")
                assert names(found) == ["a"]
                found = await server.get(
                    path, fieldSelector="spec.nodeName=n1,spec.pool.name!=pool-a"
                )
                assert names(found) == ["b"]
            pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            await server.post("/api/v1/namespaces/default/pods", pod)
            pods = await server.get(
                "/api/v1/pods", fieldSelector="spec.nodeName=,status.phase=Pending"
            )
            assert names(pods) == ["p"]

    asyncio.run(run())


def test_fields_that_are_not_set_have_their_zero_value() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post("/api/v1/nodes", {"metadata": {"name": "open"}})
            cordoned = {"metadata": {"name": "cordoned"}, "spec": {"unschedulable": True}}
            await server.post("/api/v1/nodes", cordoned)
            for value, expected in (("true", ["cordoned"]), ("false", ["open"])):
                selector = f"spec.unschedulable={value}"
                found = await server.get("/api/v1/nodes", fieldSelector=selector)
                assert names(found) == expected

    asyncio.run(run())


def test_every_version_of_an_object_is_the_same_object() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            base = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
            request = {"name": "r", "deviceClassName": "k"}
            await server.post(
                base.format("v1beta1"),
                {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}},
            )
            shown = {
                v: await server.get(base.format(v) + "/c") for v in ("v1", "v1beta2", "v1beta1")
            }
        assert {item["metadata"]["uid"] for item in shown.values()} == {
            shown["v1"]["metadata"]["uid"]
        }
        flat = shown["v1beta1"]["spec"]["devices"]["requests"][0]
        assert flat["deviceClassName"] == "k"
        assert shown["v1"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "k"
        assert shown["v1beta2"]["apiVersion"] == "resource.k8s.io/v1beta2"

    asyncio.run(run())


def test_what_only_one_version_can_say_is_not_lost() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            old, new = (
                f"/apis/resource.k8s.io/{version}/resourcepoolstatusrequests"
                for version in ("v1alpha1", "v1alpha3")
            )
            spec = {"driver": "d.example.com", "ttlSecondsAfterComplete": 300}
            await server.post(old, {"metadata": {"name": "q"}, "spec": spec})
            status = {
                "observationTime": "2026-01-01T00:00:00Z",
                "totalMatchingPools": 3,
                "validationErrors": ["pool p: too few slices"],
            }
            for path, change in (
                (f"{old}/q/status", {"status": status}),
                (f"{new}/q", {"metadata": {"labels": {"a": "b"}}}),
            ):
                merge = "application/merge-patch+json"
                answer = await server.ask("PATCH", path, change, content_type=merge)
                assert answer.code == 200, answer
            shown, other = await server.get(f"{old}/q"), await server.get(f"{new}/q")
        assert shown["spec"] == {**spec, "limit": 100}
        assert shown["status"] == {**status, "truncated": True}
        assert shown["metadata"]["labels"] == {"a": "b"}
        assert other["spec"] == {"driver": "d.example.com", "limit": 100}
        assert other["status"] == {**status, "truncated": True, "poolCount": 3}

    asyncio.run(run())


def test_tables_include_what_was_asked_for() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server, 1)
            plain = (await server.ask("GET", MAPS, headers=TABLE)).json
            none = (
                await server.ask("GET", MAPS, headers=TABLE, query={"includeObject": "None"})
            ).json
            whole = (
                await server.ask("GET", MAPS, headers=TABLE, query={"includeObject": "Object"})
            ).json
            bad = await server.ask("GET", MAPS, headers=TABLE, query={"includeObject": "All"})
        assert plain["rows"][0]["cells"] == ["m0", 1, "0s"]
        assert plain["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        assert none["rows"][0]["object"] is None
        assert whole["rows"][0]["object"]["data"] == {"k": "v"}
        assert bad.code == 400

    asyncio.run(run())


def test_metadata_alone() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await filled(server, 1)
            accept = {
                "accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            listed = (await server.ask("GET", MAPS, headers=accept)).json
        assert listed["kind"] == "PartialObjectMetadataList"
        assert listed["items"][0]["kind"] == "PartialObjectMetadata"
        assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}

    asyncio.run(run())


def test_large_answers_are_compressed_if_the_client_can_read_that() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            big = a_map("big") | {"data": {"k": "v" * 200_000}}
            await server.post(MAPS, big)
            plain = await server.ask("GET", f"{MAPS}/big")
            packed = await server.ask("GET", f"{MAPS}/big", headers={"accept-encoding": "gzip"})
            refused = await server.ask(
                "GET", f"{MAPS}/big", headers={"accept-encoding": "gzip;q=0"}
            )
        assert plain.header("content-encoding") == refused.header("content-encoding") == []
        assert packed.header("content-encoding") == ["gzip"]
        assert len(packed.content) < 10_000
        assert msgspec.json.decode(gzip.decompress(packed.content)) == plain.json

    asyncio.run(run())


def test_an_object_that_is_selected_by_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = 0
    plain = Selection.matches

    def counting(selection: Selection, stored: StoredObject | None) -> bool:
        nonlocal matched
        matched += 1
        return plain(selection, stored)

    async def run() -> None:
        async with LocalServer() as server:
            await filled(server, 50)
            monkeypatch.setattr(Selection, "matches", counting)
            found = await server.get(MAPS, fieldSelector="metadata.name=m7")
            odd = await server.get(
                MAPS, fieldSelector="metadata.name=m7", labelSelector="parity=even"
            )
            missing = await server.get(MAPS, fieldSelector="metadata.name=m")
            assert matched == 2
            everywhere = await server.get(
                "/api/v1/configmaps", fieldSelector="metadata.name=m7", limit="1"
            )
            namespaces = await server.get(
                "/api/v1/namespaces", fieldSelector="metadata.name=default"
            )
        assert [names(each) for each in (found, odd, missing, everywhere, namespaces)] == [
            ["m7"], [], [], ["m7"], ["default"],
        ]  # fmt: skip

    asyncio.run(run())


def test_lists_do_not_encode_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often objects are listed, each is encoded at most once."""
    from allot.apiserver.watch_cache import stored_objects

    encoded = 0
    plain = stored_objects.with_revision

    def counting(body: bytes, revision: int) -> bytes:
        nonlocal encoded
        encoded += 1
        return plain(body, revision)

    async def run() -> None:
        nonlocal encoded
        async with LocalServer() as server:
            await filled(server, 50)
            monkeypatch.setattr(stored_objects, "with_revision", counting)
            encoded = 0
            for _ in range(10):
                assert len(names(await server.get(MAPS))) == 50

    asyncio.run(run())
    assert encoded <= 50
