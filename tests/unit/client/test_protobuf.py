"""The client in protobuf: claims keep the bytes of their opaque parameters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import Raw

from allot.api.base import replace
from allot.api.claims import (
    DeviceClaimConfiguration,
    ResourceClaim,
)
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.protobuf.envelope import WatchEvent as Frame
from allot.api.protobuf.envelope import encode_document, in_envelope
from allot.api.protobuf.wire import delimited
from allot.api.resource import OpaqueDeviceConfiguration
from allot.client.client import Client, with_limit, without_retries
from allot.client.codecs import UnreadableEvent
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.in_process import InProcessTransport
from allot.client.informer import Informer
from allot.client.protobuf import PROTOBUF, ProtobufCodec
from allot.client.rate_limits import RequestLimit
from allot.client.resources import CONFIG_MAPS, RESOURCE_CLAIMS
from allot.client.transport import JSON, Query, Response
from allot.testing.builders import a_claim
from allot.testing.servers import TOKEN, LocalServer

PARAMETERS = b'{ "z" : 1,\n "a": "<&>" }'
KEY = ObjectKey("default", "claim")
CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
STATUS = GroupVersionKind("", "v1", "Status")


def an_opaque_claim(name: str = "claim") -> ResourceClaim:
    opaque = OpaqueDeviceConfiguration(driver="d.example.com", parameters=Raw(PARAMETERS))
    return a_claim(name=name, config=(DeviceClaimConfiguration(opaque=opaque),))


def parameters(claim: ResourceClaim) -> bytes:
    opaque = claim.spec.devices.config[0].opaque
    assert opaque is not None
    return bytes(opaque.parameters)


class Noted(InProcessTransport):
    """Notes which content types travel."""

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.server.app, TOKEN)
        self.sent: list[str] = []
        self.answered: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: object = None,
    ) -> Response:
        if body is not None:
            self.sent.append(content_type)
        response = await super().request(method, path, query, body, content_type, headers)  # type: ignore[arg-type]
        self.answered.append((response.header(b"content-type") or b"").decode())
        return response


def run(story: Callable[[Client, Noted], Awaitable[None]]) -> None:
    async def main() -> None:
        async with LocalServer() as server:
            transport = Noted(server)
            await story(Client(transport, prefers_protobuf=True), transport)

    asyncio.run(main())


def test_claims_travel_in_protobuf() -> None:
    async def story(client: Client, transport: Noted) -> None:
        created = await client.create(RESOURCE_CLAIMS, an_opaque_claim())
        read = await client.get(RESOURCE_CLAIMS, KEY)
        assert read == created or parameters(read) == parameters(created) == PARAMETERS
        protected = replace(read, metadata=replace(read.metadata, finalizers=("example.com/x",)))
        written = await client.update(RESOURCE_CLAIMS, protected)
        assert written.metadata.finalizers == ("example.com/x",)
        assert parameters(written) == PARAMETERS
        patched = await client.patch(RESOURCE_CLAIMS, KEY, {"metadata": {"labels": {"a": "b"}}})
        assert patched.metadata.labels == {"a": "b"}
        listed = await client.list(RESOURCE_CLAIMS)
        assert [parameters(claim) for claim in listed.items] == [PARAMETERS]
        assert listed.resource_version
        assert set(transport.answered) == {PROTOBUF}
        assert transport.sent == [PROTOBUF, PROTOBUF, "application/merge-patch+json"]

    run(story)


def test_lists_in_pages() -> None:
    async def story(client: Client, _: Noted) -> None:
        for n in range(7):
            await client.create(RESOURCE_CLAIMS, an_opaque_claim(f"claim-{n}"))
        listed = await client.list(RESOURCE_CLAIMS, page_size=3)
        assert [claim.metadata.name for claim in listed.items] == [f"claim-{n}" for n in range(7)]

    run(story)


def test_informers_follow_protobuf() -> None:
    async def story(client: Client, _: Noted) -> None:
        await client.create(RESOURCE_CLAIMS, an_opaque_claim("before"))
        informer = Informer(client, RESOURCE_CLAIMS)
        seen: asyncio.Queue[str] = asyncio.Queue()
        informer.add_handlers(
            on_add=lambda claim: seen.put_nowait(f"+{claim.metadata.name}"),
            on_delete=lambda claim: seen.put_nowait(f"-{claim.metadata.name}"),
        )
        informer.start()
        try:
            async with asyncio.timeout(60):
                assert await seen.get() == "+before"
                await client.create(RESOURCE_CLAIMS, an_opaque_claim())
                assert await seen.get() == "+claim"
                found = informer.get(KEY)
                assert found is not None
                assert parameters(found) == PARAMETERS
                await client.delete(RESOURCE_CLAIMS, KEY)
                assert await seen.get() == "-claim"
        finally:
            await informer.stop()

    run(story)


def test_errors_are_read_in_protobuf() -> None:
    async def story(client: Client, _: Noted) -> None:
        with pytest.raises(ApiStatusError) as refused:
            await client.get(RESOURCE_CLAIMS, KEY)
        assert refused.value.is_not_found
        assert 'resourceclaims.resource.k8s.io "claim" not found' in str(refused.value)

    run(story)


def test_other_resources_travel_in_json() -> None:
    async def story(client: Client, transport: Noted) -> None:
        await client.list(CONFIG_MAPS)
        await client.list(RESOURCE_CLAIMS.as_raw())
        assert set(transport.answered) == {JSON}

    run(story)


def test_the_preference_stays_with_copies_of_the_client() -> None:
    async def story(client: Client, transport: Noted) -> None:
        for copy in (without_retries(client), with_limit(client, RequestLimit())):
            await copy.list(RESOURCE_CLAIMS)
        assert transport.answered == [PROTOBUF, PROTOBUF]

    run(story)


def test_clients_of_servers_in_the_same_process_speak_json() -> None:
    async def main() -> None:
        async with LocalServer() as server:
            transport = Noted(server)
            created = await Client(transport).create(RESOURCE_CLAIMS, an_opaque_claim())
            assert parameters(created) == PARAMETERS
            assert transport.sent == [JSON]

    asyncio.run(main())


# --- what cannot be read ---

codec: ProtobufCodec[ResourceClaim] = ProtobufCodec(CLAIM)
WRONG = delimited(1, delimited(1, b"bad") + delimited(3, b"ns") + delimited(6, b"7")) + b"\x10\x01"


def test_objects_that_cannot_be_read() -> None:
    good = codec.encode(an_opaque_claim())
    with pytest.raises(UnreadableAnswerError, match="not a ResourceClaim"):
        codec.decode(good[:-20])
    content = delimited(1, delimited(2, b"9")) + delimited(2, WRONG)
    page = in_envelope(content, "resource.k8s.io/v1", "ResourceClaimList")
    with pytest.raises(UnreadableAnswerError):
        codec.decode_page(page)
    lenient = codec.decode_page(page, lenient=True)
    assert (lenient.items, lenient.resource_version) == ([], "9")
    assert lenient.unreadable[0].key == ObjectKey("ns", "bad")
    with pytest.raises(UnreadableAnswerError, match="not a list"):
        codec.decode_page(in_envelope(b"\x12\x7f", "resource.k8s.io/v1", "ResourceClaimList"))


def test_events_that_cannot_be_read() -> None:
    body = in_envelope(WRONG, "resource.k8s.io/v1", "ResourceClaim")
    event = codec.decode_event(Frame("MODIFIED", body))
    assert isinstance(event, UnreadableEvent)
    assert (event.unreadable.key, event.resource_version) == (ObjectKey("ns", "bad"), "7")
    with pytest.raises(UnreadableAnswerError):
        codec.decode_event(Frame("MODIFIED", b"{}"))
    status = encode_document({"code": 410, "reason": "Expired", "message": "too old"}, STATUS)
    with pytest.raises(ApiStatusError) as expired:
        codec.decode_event(Frame("ERROR", status))
    assert expired.value.is_expired
