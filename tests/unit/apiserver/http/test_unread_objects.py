"""Writes whose clients do not read the stored object: a success has no body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from allot.api.identities import ObjectKey
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.client.client import Client
from allot.client.component_users import CONTROLLER_MANAGER
from allot.client.errors import ApiStatusError
from allot.client.in_process import InProcessTransport
from allot.client.resources import PODS
from allot.client.transport import WITHOUT_OBJECT, Response
from allot.testing.servers import TOKEN, LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = {"metadata": {"name": "m"}, "data": {"a": "b"}}
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
