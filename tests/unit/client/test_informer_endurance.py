"""One bad object, one bad index or a very large list does not keep an informer from the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.informer import Informer
from allot.client.metadata import metadata_resource
from allot.client.resources import CONFIG_MAPS, RESOURCE_SLICES, Resource
from allot.client.transport import Response
from tests.unit.client.fakes import REFUSED, FakeApi, FakeClock, answer, scripted, settle

END = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
METADATA_SLICES = metadata_resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False
)


def a_slice_document(name: str, version: int, driver: Any = "d.example.com") -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "ResourceSlice", "metadata": metadata, "spec": {"driver": driver}}


def bad(obj: dict[str, Any]) -> dict[str, Any]:
    """Neither typed objects nor metadata look like this."""
    return {**obj, "spec": 7, "metadata": {**obj["metadata"], "finalizers": 7}}


def watched(*events: tuple[str, dict[str, Any]]) -> Response:
    lines = [msgspec.json.encode({"type": type_, "object": obj}) for type_, obj in events]
    return Response(200, [], b"\n".join(lines) + b"\n")


def names(informer: Informer[Any]) -> dict[str, str]:
    codec = informer.resource.codec
    return {codec.key(obj).name: codec.resource_version(obj) for obj in informer.list()}


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "pages"])
@pytest.mark.parametrize("resource", [RESOURCE_SLICES, METADATA_SLICES], ids=["typed", "metadata"])
def test_an_object_that_cannot_be_read_is_skipped(
    resource: Resource[Any], streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    listed = [a_slice_document("a", 2), bad(a_slice_document("b", 3)), a_slice_document("c", 4)]
    if streaming:
        first = [watched(*(("ADDED", obj) for obj in listed), ("BOOKMARK", END))]
    else:
        page = {"metadata": {"resourceVersion": "9"}, "items": listed}
        first = [answer(200, page)]
    changes = watched(
        ("MODIFIED", bad(a_slice_document("a", 10))),
        ("ADDED", a_slice_document("d", 11)),
        ("ADDED", bad(a_slice_document("e", 12))),
        ("MODIFIED", a_slice_document("b", 13)),
        ("DELETED", bad(a_slice_document("c", 14))),
    )

    async def main() -> None:
        client, transport, _ = scripted(*first, changes, REFUSED, hasty=False)
        informer = Informer(client, resource, streaming=streaming)
        informer.start()
        await informer.wait_synced()
        await settle(40)
        # What became unreadable is as it was last; what always was is not there.
        assert names(informer) == {"a": "2", "d": "11", "b": "13"}
        assert informer.resource_version == "14"
        assert informer.lists == 1
        assert not transport.answers
        await informer.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert "b: skipped, cannot be decoded" in caplog.text


def test_a_new_list_keeps_what_became_unreadable() -> None:
    gone = Response(
        410, [], msgspec.json.encode({"kind": "Status", "code": 410, "reason": "Expired"})
    )
    pages = [
        answer(
            200,
            {
                "metadata": {"resourceVersion": "5"},
                "items": [a_slice_document("a", 2), a_slice_document("b", 3)],
            },
        ),
        gone,
        answer(
            200, {"metadata": {"resourceVersion": "9"}, "items": [bad(a_slice_document("a", 8))]}
        ),
    ]

    async def main() -> None:
        client, _, _ = scripted(*pages, *[REFUSED] * 100)
        informer: Informer[ResourceSlice] = Informer(client, RESOURCE_SLICES, streaming=False)
        informer.start()
        await settle(60)
        assert names(informer) == {"a": "2"}
        await informer.stop()

    asyncio.run(main())


def test_a_list_for_others_than_informers_is_refused() -> None:
    """A partial list is worse than an error for a caller that decides by it once."""
    page = {"metadata": {"resourceVersion": "9"}, "items": [bad(a_slice_document("a", 8))]}

    async def main() -> None:
        client, _, _ = scripted(answer(200, page))
        with pytest.raises(Exception, match="not a ResourceSlice"):
            await client.list(RESOURCE_SLICES)

    asyncio.run(main())


def failing_on(name: str) -> Callable[[RawObject], list[str]]:
    def index(obj: RawObject) -> list[str]:
        if obj.metadata.name == name:
            raise RuntimeError("what is that?")
        return ["x"]

    return index


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "pages"])
def test_an_index_that_always_fails_on_one_object_harms_no_other(streaming: bool) -> None:
    async def main() -> None:
        api = FakeApi(streaming=streaming)
        clock = FakeClock()
        for name in ("a", "bad", "c"):
            api.put(name)
        informer = Informer(Client(api, clock=clock), CONFIG_MAPS, indexes={"i": failing_on("bad")})
        informer.start()
        await settle(60)
        assert informer.has_synced
        assert sorted(names(informer)) == ["a", "c"]
        api.put("d")
        api.put("bad")
        api.delete("c")
        await settle()
        assert sorted(names(informer)) == ["a", "d"]
        assert informer.lists == 1
        await clock.advance(3600)
        assert informer.lists == 1
        assert informer.get(ObjectKey("default", "bad")) is None
        await informer.stop()

    asyncio.run(main())


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "pages"])
def test_a_large_list_leaves_others_their_turn(streaming: bool) -> None:
    """Counted in objects that handlers heard of between two turns of another task."""
    count = 3000

    async def main() -> None:
        api = FakeApi(streaming=streaming, piece=100_000_000)
        for number in range(count):
            api.put(f"n{number}")
        informer = Informer(Client(api, clock=FakeClock()), CONFIG_MAPS)
        heard = 0

        def hear(_: RawObject) -> None:
            nonlocal heard
            heard += 1

        informer.add_handlers(on_add=hear)
        informer.start()
        longest = before = 0
        while heard < count:
            await asyncio.sleep(0)
            longest, before = max(longest, heard - before), heard
        assert longest <= 200
        await informer.stop()

    asyncio.run(main())
