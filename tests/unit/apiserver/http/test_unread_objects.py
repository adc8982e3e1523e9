"""Writes whose clients do not read the stored object, or know it already: a success has no body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.managed_fields import without_managed_fields
from allot.api.resource import DELETE_PROTECTION
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.write_results import Written, is_as_sent
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.client.client import Client
from allot.client.component_users import CONTROLLER_MANAGER
from allot.client.errors import ApiStatusError
from allot.client.in_process import InProcessTransport
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.client.transport import WITHOUT_OBJECT, Response
from allot.features import BINDING_CONDITIONS, DEFAULTS
from allot.storage.interface import Entry
from allot.testing.builders import a_claim, a_consumer, an_allocation
from allot.testing.servers import TOKEN, LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = {"metadata": {"name": "m"}, "data": {"a": "b"}}
CLAIMS = resource_named("resource.k8s.io", "resourceclaims")
UNREAD = {WITHOUT_OBJECT: "true"}


class Lines:
    def __init__(self) -> None:
        self.text = b""

    def write(self, lines: bytes) -> None:
        self.text += lines

    def close(self) -> None:
        pass


async def create(server: LocalServer, obj: Mapping[str, Any]) -> Response:
    transport = InProcessTransport(server.server.app, TOKEN)
    return await transport.request("POST", MAPS, body=msgspec.json.encode(obj), headers=UNREAD)


def test_a_success_has_no_body_and_an_error_has_one() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            answer = await create(server, MAP)
            assert (answer.code, answer.body) == (201, b"")
            assert (await server.get(f"{MAPS}/m"))["data"] == {"a": "b"}
            refused = await create(server, MAP)
            assert refused.code == 409
            assert msgspec.json.decode(refused.body)["reason"] == "AlreadyExists"

    asyncio.run(run())


def test_warnings_come_without_the_object() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            answer = await create(server, {**MAP, "unknown": 1})
            assert answer.body == b""
            assert b"unknown" in (answer.header(b"warning") or b"")

    asyncio.run(run())


def test_clients_from_outside_get_the_object() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            assert (await server.post(MAPS, MAP, headers=UNREAD))["metadata"]["name"] == "m"

    asyncio.run(run())


def test_the_audit_log_shows_the_object() -> None:
    async def run() -> None:
        lines = Lines()
        policy = AuditPolicy((AuditRule(Level.REQUEST_RESPONSE),))
        auditor = Auditor(policy, lines, lambda: datetime.now(UTC))
        async with LocalServer(auditor=auditor) as server:
            await create(server, MAP)
            auditor.close()
        stored = [
            msgspec.json.decode(line)
            for line in lines.text.splitlines()
            if b"POST" in line or b"create" in line
        ]
        assert stored[-1]["responseObject"]["data"] == {"a": "b"}

    asyncio.run(run())


def test_a_client_that_submits_does_not_ask_for_the_object() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            client = Client(InProcessTransport(server.server.app, CONTROLLER_MANAGER))
            with pytest.raises(ApiStatusError) as caught:
                await client.submit_patch(
                    PODS, ObjectKey("default", "missing"), {}, subresource="status"
                )
            assert caught.value.is_not_found or caught.value.code == 403
            admin = Client(InProcessTransport(server.server.app, TOKEN))
            pod = {"metadata": {"name": "p", "namespace": "default"}}
            spec = {"containers": [{"name": "m", "image": "i"}]}
            await server.post("/api/v1/namespaces/default/pods", {**pod, "spec": spec})
            key = ObjectKey("default", "p")
            labels = {"metadata": {"labels": {"a": "b"}}}
            assert (await admin.submit_patch(PODS, key, labels)).body == b""
            assert (await admin.submit_apply(PODS, key, labels, "test")).body == b""
            assert (await admin.patch(PODS, key, labels)) is not None

    asyncio.run(run())


class Labels:
    """Admission that labels every claim whose status is updated."""

    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "update" and resource.plural == "resourceclaims"

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        new = attributes.new
        return replace(new, metadata=replace(new.metadata, labels={"by": "admission"}))


class Sent(NamedTuple):
    """An update of a claim with its status."""

    claim: ResourceClaim
    response: Response
    stored: ResourceClaim

    @property
    def updated(self) -> ResourceClaim:
        return Client.updated(RESOURCE_CLAIMS, self.claim, self.response)


async def allocate(server: LocalServer, **fields: Any) -> Sent:
    """A claim gets a device, as the scheduler writes it."""
    client = Client(InProcessTransport(server.server.app, TOKEN))
    new = without_managed_fields(await client.create(RESOURCE_CLAIMS, a_claim()))
    allocation = an_allocation("gpu-0", node="node-1", **fields)
    status = replace(new.status, allocation=allocation, reserved_for=(a_consumer(),))
    metadata = replace(new.metadata, finalizers=(DELETE_PROTECTION,))
    claim = replace(new, metadata=metadata, status=status)
    response = await client.submit_update_with_status(RESOURCE_CLAIMS, claim)
    stored = await client.get(RESOURCE_CLAIMS, claim.key)
    return Sent(claim, response, without_managed_fields(stored))


def test_an_object_that_is_stored_as_it_was_sent_is_answered_with_its_version() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            sent = await allocate(server)
            assert sent.response.body == b""
            assert sent.updated == sent.stored
            assert sent.stored.metadata.resource_version != sent.claim.metadata.resource_version

    asyncio.run(run())


def test_an_object_that_admission_changes_is_shown() -> None:
    async def run() -> None:
        async with LocalServer(plugins=[Labels()]) as server:
            sent = await allocate(server)
            assert without_managed_fields(sent.updated) == sent.stored
            assert sent.updated.metadata.labels == {"by": "admission"}

    asyncio.run(run())


def test_an_object_that_loses_fields_is_shown() -> None:
    async def run() -> None:
        gates = DEFAULTS.switched({BINDING_CONDITIONS: False})
        async with LocalServer(gates=gates) as server:
            sent = await allocate(
                server, binding_conditions=("Attached",), binding_failure_conditions=("Lost",)
            )
            assert without_managed_fields(sent.updated) == sent.stored
            allocation = sent.updated.status.allocation
            assert allocation is not None
            assert allocation.devices.results[0].binding_conditions == ()

    asyncio.run(run())


@pytest.mark.parametrize("part", ["metadata", "spec", "status"])
def test_every_part_of_an_object_counts(part: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            sent = await allocate(server)
            store = StoredObject(Entry("k", b"", 7, 1), storage_codec(CLAIMS), sent.stored)
            assert is_as_sent(sent.claim, Written(store, []))
            assert not is_as_sent(sent.claim, Written(store, [], gone=True))
            other = ResourceClaim()
            differs = replace(sent.claim, **{part: getattr(other, part)})
            assert not is_as_sent(differs, Written(store, []))

    asyncio.run(run())
