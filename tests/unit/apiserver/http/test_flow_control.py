"""Flow control: which requests get 429, which never do, and what is decided before a body is read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from allot.apiserver.auth.authentication import MASTERS, User
from allot.apiserver.http.fair_limiter import QueueLimits
from allot.apiserver.http.flow_control import (
    SYSTEM,
    WORKLOAD,
    FlowLimits,
    level_of,
    seats_for,
)
from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.client.resources import CONFIG_MAPS
from allot.testing.servers import TOKEN, LocalServer, ServerResponse
from allot.testing.virtual_time import run_in_virtual_time

MAPS = "/api/v1/namespaces/default/configmaps"
USERS = {
    "ann-token": User("ann", groups=(MASTERS,)),
    "ben-token": User("ben", groups=(MASTERS,)),
    "node-token": User("system:node:n1", groups=("system:nodes", MASTERS)),
    "eve-token": User("eve"),
}
FEW = FlowLimits(
    max_requests_inflight=2,
    max_mutating_requests_inflight=2,
    max_watches_per_user=2,
    queue=QueueLimits(max_waiting=8, max_waiting_per_user=2, wait_seconds=5),
)


def a_server(limits: FlowLimits = FEW) -> LocalServer:
    return LocalServer(users=USERS, flow_limits=limits)


def as_user(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}-token"}


class SlowBody:
    """A request whose body never comes, unless it is told to."""

    def __init__(
        self, server: LocalServer, user: str, path: str = MAPS, method: str = "POST"
    ) -> None:
        self._server = server
        self._headers = {**as_user(user), "content-type": "application/json"}
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
        }
        self.body = asyncio.Event()
        self.was_asked_for = False
        self.code = 0
        self.headers: Mapping[str, str] = {}

    async def run(self, **headers: str) -> SlowBody:
        given = {**self._headers, **headers}
        self._scope["headers"] = [(name.encode(), value.encode()) for name, value in given.items()]
        await self._server.server.app(self._scope, self._receive, self._send)
        return self

    async def _receive(self) -> dict[str, Any]:
        self.was_asked_for = True
        await self.body.wait()
        return {"type": "http.request", "body": b'{"metadata":{"generateName":"a-"}}'}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}


class SlowReader(SlowBody):
    """A request whose answer is not taken, unless it is told to."""

    def __init__(self, server: LocalServer, user: str, path: str) -> None:
        super().__init__(server, user, path, "GET")

    async def _send(self, message: Mapping[str, Any]) -> None:
        await super()._send(message)
        if self.code == 200:
            await self.body.wait()


class HeldStore:
    """Lets reads of the store wait, so that requests stay in flight."""

    def __init__(self, server: LocalServer) -> None:
        self._real = server.store.revision
        self.gate = asyncio.Event()
        server.store.revision = self._revision  # type: ignore[method-assign]

    async def _revision(self) -> int:
        await self.gate.wait()
        return await self._real()


def test_too_many_reads_of_one_user() -> None:
    async def story() -> None:
        async with a_server() as server:
            held = HeldStore(server)

            def get(user: str) -> asyncio.Task[ServerResponse]:
                return asyncio.create_task(server.ask("GET", MAPS, headers=as_user(user)))

            flood = [get("ann") for _ in range(6)]
            await asyncio.sleep(0.1)
            refused = [task.result() for task in flood if task.done()]
            assert [answer.code for answer in refused] == [429, 429, 429]
            assert refused[0].header("retry-after") == ["1"]
            status = refused[0].json
            assert (status["kind"], status["reason"]) == ("Status", "TooManyRequests")
            assert status["details"] == {"retryAfterSeconds": 1}
            assert "'ann'" in status["message"]

            for path in ("/livez", "/livez/ping"):
                assert (await server.ask("GET", path, headers=as_user("ann"))).code == 200
            other, node = get("ben"), get("node")
            await asyncio.sleep(0.1)
            held.gate.set()
            assert [(await task).code for task in (other, node)] == [200, 200]
            codes = sorted(answer.code for answer in await asyncio.gather(*flood))
            assert codes == [200] * 3 + [429] * 3
            page = (await server.ask("GET", "/metrics")).content.decode()
            rejected = 'priority_level="workload",reason="queue-full",request_kind="readOnly"'
            assert f"apiserver_flowcontrol_rejected_requests_total{{{rejected}}} 3.0" in page
            # The page itself is being answered.
            assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1.0' in page

    run_in_virtual_time(story())


def test_a_request_queued_too_long_is_429() -> None:
    async def story() -> None:
        async with a_server() as server:
            held = HeldStore(server)
            tasks = [
                asyncio.create_task(server.ask("GET", MAPS, headers=as_user("ann")))
                for _ in range(3)
            ]
            await asyncio.sleep(4.9)
            assert not any(task.done() for task in tasks)
            await asyncio.sleep(0.2)
            assert [task.result().code for task in tasks if task.done()] == [429, 429]
            held.gate.set()
            assert (await tasks[0]).code == 200

    run_in_virtual_time(story())


def test_reads_and_writes_have_seats_of_their_own() -> None:
    async def story() -> None:
        async with a_server() as server:
            held = HeldStore(server)
            reads = [
                asyncio.create_task(server.ask("GET", MAPS, headers=as_user(user)))
                for user in ("ann", "ben")
            ]
            await asyncio.sleep(0.1)
            body = {"metadata": {"name": "written"}}
            writing = asyncio.create_task(server.ask("POST", MAPS, body, headers=as_user("ann")))
            await asyncio.sleep(0.1)
            held.gate.set()
            assert (await writing).code == 201
            await asyncio.gather(*reads)

    run_in_virtual_time(story())


def test_slow_bodies_hold_no_seat() -> None:
    async def story() -> None:
        async with a_server() as server:
            slow = [SlowBody(server, "ann") for _ in range(5)]
            tasks = [asyncio.create_task(each.run()) for each in slow]
            await asyncio.sleep(0.1)
            body = {"metadata": {"name": "quick"}}
            assert (await server.ask("POST", MAPS, body, headers=as_user("ann"))).code == 201
            slow[0].body.set()
            await tasks[0]
            assert slow[0].code == 201
            await asyncio.sleep(10)
            assert [each.code for each in slow[1:]] == [408] * 4
            await asyncio.gather(*tasks)

    run_in_virtual_time(story())


@pytest.mark.parametrize(
    ("user", "method", "path", "code"),
    [
        pytest.param("eve", "POST", MAPS, 403, id="may-not"),
        pytest.param("eve", "POST", "/x", 403, id="no-such-page"),
        pytest.param("eve", "POST", "/metrics", 403, id="page"),
        pytest.param("eve", "PUT", "/livez", 403, id="health"),
        pytest.param("missing", "POST", MAPS, 401, id="unknown"),
        pytest.param("missing", "POST", "/x", 401, id="unknown-page"),
        pytest.param("ann", "POST", "/x", 404, id="admin-no-such-page"),
        pytest.param("ann", "POST", "/version", 405, id="admin-wrong-method"),
        pytest.param("ann", "POST", f"{MAPS}/a", 405, id="admin-wrong-method-of-object"),
        pytest.param("ann", "GET", MAPS, 200, id="read"),
    ],
)
def test_bodies_are_read_only_from_those_who_may_send_them(
    user: str, method: str, path: str, code: int
) -> None:
    async def story() -> SlowBody:
        async with a_server() as server:
            return await SlowBody(server, user, path, method).run(**{"content-length": "3000000"})

    refused = run_in_virtual_time(story())
    assert (refused.code, refused.was_asked_for) == (code, False)
    assert refused.headers["connection"] == "close"


def test_small_unread_bodies_do_not_end_the_connection() -> None:
    async def story() -> SlowBody:
        async with a_server() as server:
            return await SlowBody(server, "eve").run(**{"content-length": "100"})

    assert "connection" not in run_in_virtual_time(story()).headers


def test_the_memory_of_bodies_is_limited_per_user_and_in_all() -> None:
    async def story() -> None:
        async with a_server(FEW._replace(max_body_bytes=4_000)) as server:
            slow = [SlowBody(server, "ann") for _ in range(6)]
            tasks = [asyncio.create_task(each.run(**{"content-length": "1000"})) for each in slow]
            await asyncio.sleep(0.1)
            assert [each.was_asked_for for each in slow] == [True] * 3 + [False] * 3
            assert [each.code for each in slow] == [0] * 5 + [429]
            other = SlowBody(server, "ben")
            other.body.set()
            assert (await other.run(**{"content-length": "900"})).code == 201
            page = (await server.ask("GET", "/metrics")).content.decode()
            assert 'request_body_bytes{priority_level="workload"} 3000.0' in page
            for each in slow:
                each.body.set()
            await asyncio.gather(*tasks)
            assert [each.code for each in slow] == [201] * 5 + [429]
            page = (await server.ask("GET", "/metrics")).content.decode()
            assert 'request_body_bytes{priority_level="workload"} 0.0' in page

    run_in_virtual_time(story())


def test_a_body_without_length_counts_as_the_largest() -> None:
    async def story() -> None:
        async with a_server(FEW._replace(max_body_bytes=8 * 1024 * 1024)) as server:
            slow = [SlowBody(server, "ann") for _ in range(3)]
            tasks = [
                asyncio.create_task(each.run(**{"transfer-encoding": "chunked"})) for each in slow
            ]
            await asyncio.sleep(0.1)
            assert [each.was_asked_for for each in slow] == [True, True, False]
            slow[0].body.set()
            await asyncio.sleep(0.1)
            assert slow[2].was_asked_for
            slow[1].body.set()
            slow[2].body.set()
            await asyncio.gather(*tasks)

    run_in_virtual_time(story())


def test_watches_hold_no_seat_but_are_counted() -> None:
    async def story() -> None:
        async with a_server() as server:
            one = server.watch(MAPS, headers=as_user("ann"))
            two = server.watch(MAPS, headers=as_user("ann"))
            async with one as first, two:
                assert (await server.ask("GET", MAPS, headers=as_user("ann"))).code == 200
                too_many = await server.ask(
                    "GET", MAPS, headers=as_user("ann"), query={"watch": "true"}
                )
                assert (too_many.code, too_many.header("retry-after")) == (429, ["1"])
                async with server.watch(MAPS, headers=as_user("ben")) as other:
                    assert other.code == 200
                first.gone.set()
                await asyncio.sleep(0.1)
                async with server.watch(MAPS, headers=as_user("ann")) as again:
                    assert again.code == 200

    run_in_virtual_time(story())


def test_logs_hold_no_seat_but_are_counted() -> None:
    async def story() -> None:
        async with a_server() as server:
            held = HeldStore(server)

            def log(query: str = "") -> asyncio.Task[ServerResponse]:
                path = f"/api/v1/namespaces/default/pods/p/log{query}"
                return asyncio.create_task(server.ask("GET", path, headers=as_user("ann")))

            logs = [log(), log("?follow=true")]
            await asyncio.sleep(0.1)
            assert not any(task.done() for task in logs)
            assert (await log()).code == 429
            cached = await server.ask(
                "GET", MAPS, headers=as_user("ann"), query={"resourceVersion": "0"}
            )
            assert cached.code == 200, "it does not wait for the logs"
            held.gate.set()
            assert [(await task).code for task in logs] == [404, 404]
            assert (await log()).code == 404, "those that have ended are not counted"

    run_in_virtual_time(story())


def test_slow_readers_of_large_answers_hold_no_seat() -> None:
    async def story() -> None:
        async with a_server() as server:
            for name, size in (("large", 1_000_000), ("small", 10)):
                await server.post(MAPS, {"metadata": {"name": name}, "data": {"a": "x" * size}})

            async def get(user: str, name: str) -> int:
                answer = await server.ask("GET", f"{MAPS}/{name}", headers=as_user(user))
                return answer.code

            slow = [SlowReader(server, "ann", f"{MAPS}/large") for _ in range(3)]
            tasks = [asyncio.create_task(each.run()) for each in slow]
            await asyncio.sleep(0.1)
            assert [each.code for each in slow] == [200, 0, 0], "one user sends one of two"
            assert [await get("ann", "small") for _ in range(5)] == [200] * 5
            assert (await get("ben", "small"), await get("ben", "large")) == (200, 200)
            await asyncio.sleep(6)
            assert [each.code for each in slow] == [200, 429, 429]
            slow[0].body.set()
            await asyncio.gather(*tasks)
            assert await get("ann", "large") == 200

    run_in_virtual_time(story())


def test_large_answers_to_writes_are_never_refused() -> None:
    async def story() -> None:
        async with a_server() as server:
            body = {"metadata": {"name": "large"}, "data": {"a": "x" * 1_000_000}}
            await server.post(MAPS, body)
            slow = SlowReader(server, "ann", f"{MAPS}/large")
            task = asyncio.create_task(slow.run())
            await asyncio.sleep(0.1)
            patch = await server.ask(
                "PATCH",
                f"{MAPS}/large",
                {"data": {"b": "c"}},
                headers=as_user("ann"),
                content_type="application/merge-patch+json",
            )
            assert patch.code == 200
            slow.body.set()
            await task

    run_in_virtual_time(story())


def test_components_in_the_same_process_are_exempt() -> None:
    async def story() -> None:
        async with a_server() as server:
            held = HeldStore(server)
            flood = [
                asyncio.create_task(server.ask("GET", MAPS, headers=as_user(user)))
                for user in ("ann", "ben", "ann", "ben")
            ]
            await asyncio.sleep(0.1)
            client = Client(InProcessTransport(server.server.app, TOKEN))
            own = [asyncio.create_task(client.list(CONFIG_MAPS)) for _ in range(10)]
            await asyncio.sleep(0.1)
            held.gate.set()
            assert len(await asyncio.gather(*own)) == 10
            await asyncio.gather(*flood)

    run_in_virtual_time(story())


@pytest.mark.parametrize(
    ("user", "level"),
    [
        (User("allot:driver"), SYSTEM),
        (User("system:kube-scheduler"), SYSTEM),
        (User("system:kube-controller-manager"), SYSTEM),
        (User("system:node:n", groups=("system:nodes",)), SYSTEM),
        (
            User(
                "system:serviceaccount:kube-system:gc",
                groups=("system:serviceaccounts:kube-system",),
            ),
            SYSTEM,
        ),
        (
            User("system:serviceaccount:default:a", groups=("system:serviceaccounts:default",)),
            WORKLOAD,
        ),
        (User("admin", groups=(MASTERS,)), WORKLOAD),
        (User("system:anonymous"), WORKLOAD),
    ],
)
def test_levels(user: User, level: str) -> None:
    assert level_of(user) == level


@pytest.mark.parametrize(("objects", "seats"), [(0, 1), (99, 1), (100, 2), (899, 9), (10**6, 10)])
def test_long_lists_take_more_seats(objects: int, seats: int) -> None:
    assert seats_for(objects) == seats


def test_the_log_says_when_requests_are_rejected(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with a_server() as server:
            HeldStore(server)
            tasks = [
                asyncio.create_task(server.ask("GET", MAPS, headers=as_user("ann")))
                for _ in range(20)
            ]
            await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with caplog.at_level(logging.WARNING):
        run_in_virtual_time(story())
    lines = [record.getMessage() for record in caplog.records if "429" in record.getMessage()]
    assert len(lines) == 1
    assert "user 'ann'" in lines[0]
