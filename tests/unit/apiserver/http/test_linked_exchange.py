"""Requests that come over a link in one piece: everything that HTTP requests pass applies to them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec

from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.apiserver.http.http_exchange import MAX_BODY
from allot.apiserver.http.linked_exchange import LinkedExchange
from allot.apiserver.http.responses import GZIP_FROM
from allot.client.asgi import Headers
from allot.client.component_users import CONTROLLER_MANAGER, SCHEDULER, ComponentUser
from allot.client.link import RequestFrame, ResponseFrame
from allot.testing.servers import LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
METADATA = AuditPolicy((AuditRule(Level.METADATA),))


class Log:
    def __init__(self) -> None:
        self.text = b""

    def write(self, lines: bytes) -> None:
        self.text += lines

    def close(self) -> None:
        pass

    @property
    def last(self) -> dict[str, object]:
        event: dict[str, object] = msgspec.json.decode(self.text.splitlines()[-1])
        return event


def asked(
    method: str,
    path: str,
    body: object = None,
    *,
    query: str = "",
    headers: Headers | None = None,
    user: ComponentUser | None = SCHEDULER,
) -> LinkedExchange:
    content = (
        body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
    )
    frame = RequestFrame(1, method, path, query, tuple(headers or ()), content, False)
    return LinkedExchange(frame, user, sees_pending_writes=True)


async def answered(server: LocalServer, exchange: LinkedExchange) -> ResponseFrame:
    await server.server.app.serve(exchange)
    assert exchange.answered is not None
    return exchange.answered


def test_roles_decide_what_components_may_do_and_others_are_anonymous() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            assert (await answered(server, asked("GET", PODS))).code == 200
            refused = await answered(server, asked("POST", PODS, {"metadata": {"name": "p"}}))
            assert refused.code == 403
            assert b'User \\"system:kube-scheduler\\" cannot create' in refused.body
            anonymous = await answered(server, asked("GET", PODS, user=None))
            assert anonymous.code == 403
            assert b"system:anonymous" in anonymous.body
            forged = [(b"authorization", b"Bearer forged")]
            assert (
                await answered(server, asked("GET", PODS, user=None, headers=forged))
            ).code == 401

    asyncio.run(story())


def test_a_component_needs_the_right_to_impersonate() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            headers = [(b"impersonate-user", b"ann")]
            refused = await answered(server, asked("GET", PODS, headers=headers))
            assert refused.code == 403
            assert b'cannot impersonate resource \\"users\\"' in refused.body

    asyncio.run(story())


def test_bodies_are_limited() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            long = asked("POST", "/api/v1/namespaces/default/events", b" " * (MAX_BODY + 1))
            assert (await answered(server, long)).code == 413

    asyncio.run(story())


def test_long_answers_come_whole_and_as_they_are() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            for number in range(30):
                body = {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 20_000}}
                await server.post(MAPS, body)
            gzip = [(b"accept-encoding", b"gzip")]
            lists = asked("GET", MAPS, headers=gzip, user=CONTROLLER_MANAGER)
            answer = await answered(server, lists)
            assert answer.code == 200
            assert len(answer.body) > 2 * GZIP_FROM
            assert len(msgspec.json.decode(answer.body)["items"]) >= 30
            assert answer.headers == [(b"content-type", b"application/json")]

    asyncio.run(story())


def test_head_has_no_body_and_a_watch_ends_at_once() -> None:
    async def story() -> None:
        async with LocalServer() as server, asyncio.timeout(60):
            head = await answered(server, asked("HEAD", PODS))
            assert (head.code, head.body) == (200, b"")
            watch = await answered(server, asked("GET", PODS, query="watch=true"))
            assert (watch.code, watch.body) == (200, b"")

    asyncio.run(story())


def test_requests_are_audited_and_counted() -> None:
    async def story() -> Log:
        log = Log()
        auditor = Auditor(METADATA, log, lambda: datetime.now(UTC))
        async with LocalServer(auditor=auditor) as server:
            headers = [(b"audit-id", b"mine"), (b"user-agent", b"me")]
            await answered(server, asked("GET", f"{PODS}/p%2Fq", query="pretty=1", headers=headers))
            auditor.close()
            counted = server.server.metrics.requests._series
            assert any(labels.resource == "pods" and labels.verb == "get" for labels in counted)
        return log

    event = asyncio.run(story()).last
    assert event["auditID"] == "mine"
    assert event["userAgent"] == "me"
    assert event["requestURI"] == f"{PODS}/p%2Fq?pretty=1"
    assert event["user"] == {"username": SCHEDULER.name, "groups": [*SCHEDULER.groups]}
    assert event["verb"] == "get"
