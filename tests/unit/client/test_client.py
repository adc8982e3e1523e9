from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError, TransportError
from allot.client.options import DeleteOptions, PatchType, Scope
from allot.client.rate_limits import RequestLimit
from allot.client.resources import CONFIG_MAPS, NODES, PODS, RESOURCE_CLAIMS
from allot.client.transport import Response
from tests.unit.client.fakes import (
    LOST,
    REFUSED,
    FakeClock,
    ScriptedTransport,
    answer,
    scripted,
    status,
)

KEY = ObjectKey("default", "a")
BODY = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
NAMED = RawObject(BODY)
VERSIONED = RawObject({"metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"}})
GENERATED = RawObject({"metadata": {"generateName": "a-", "namespace": "default"}})
THIS_ONE = DeleteOptions(uid="u1")

Call = Callable[[Client], Awaitable[Any]]


def get(client: Client) -> Awaitable[Any]:
    return client.get(CONFIG_MAPS, KEY)


def create(client: Client) -> Awaitable[Any]:
    return client.create(CONFIG_MAPS, NAMED)


def generate(client: Client) -> Awaitable[Any]:
    return client.create(CONFIG_MAPS, GENERATED)


def update(client: Client) -> Awaitable[Any]:
    return client.update(CONFIG_MAPS, VERSIONED)


def overwrite(client: Client) -> Awaitable[Any]:
    return client.update(CONFIG_MAPS, NAMED)


def merge(client: Client) -> Awaitable[Any]:
    return client.patch(CONFIG_MAPS, KEY, {"data": {"a": "b"}})


def append(client: Client) -> Awaitable[Any]:
    return client.patch(CONFIG_MAPS, KEY, [], PatchType.JSON)


def delete(client: Client) -> Awaitable[Any]:
    return client.delete(CONFIG_MAPS, KEY)


def delete_this(client: Client) -> Awaitable[Any]:
    return client.delete(CONFIG_MAPS, KEY, THIS_ONE)


def bind(client: Client) -> Awaitable[Any]:
    return client.bind(KEY, "u1", "node-1")


def evict(client: Client) -> Awaitable[Any]:
    return client.evict(KEY)


def run(call: Call, *answers: Response | Exception) -> tuple[Any, ScriptedTransport, FakeClock]:
    client, transport, clock = scripted(*answers)

    async def main() -> Any:
        return await call(client)

    return asyncio.run(main()), transport, clock


REPEATED = [get, create, update, merge, delete_this, bind]
NOT_REPEATED = [generate, overwrite, append, delete, evict]


@pytest.mark.parametrize("call", REPEATED, ids=lambda call: call.__name__)
@pytest.mark.parametrize("trouble", [LOST, answer(500), answer(503)], ids=["lost", "500", "503"])
def test_idempotent_requests_are_retried(call: Call, trouble: Response | Exception) -> None:
    _, transport, _ = run(call, trouble, trouble, answer(200, BODY))

    assert len(transport.requests) == 3
    assert transport.requests[0] == transport.requests[2]


@pytest.mark.parametrize("call", NOT_REPEATED, ids=lambda call: call.__name__)
def test_other_requests_are_not_retried_when_the_answer_is_lost(call: Call) -> None:
    with pytest.raises(TransportError):
        run(call, LOST)
    with pytest.raises(ApiStatusError):
        run(call, answer(500))


@pytest.mark.parametrize("call", REPEATED + NOT_REPEATED, ids=lambda call: call.__name__)
def test_requests_that_were_not_sent_are_always_retried(call: Call) -> None:
    _, transport, clock = run(
        call, REFUSED, answer(429, retry_after="3"), answer(429), answer(200, BODY)
    )

    assert len(transport.requests) == 4
    assert clock.slept == [0.05, 3.0, 0.2]


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 422])
def test_a_refusal_is_final(code: int) -> None:
    with pytest.raises(ApiStatusError) as caught:
        run(update, answer(code, status(code, "Because")))

    assert (caught.value.code, caught.value.reason) == (code, "Because")


def test_waits_double_up_to_a_limit_and_end() -> None:
    client, transport, clock = scripted(*[answer(503)] * 20)

    with pytest.raises(ApiStatusError):
        asyncio.run(client.get(CONFIG_MAPS, KEY))

    assert len(transport.requests) == 10
    assert clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_delete_whose_first_answer_was_lost_may_find_nothing() -> None:
    run(delete_this, LOST, answer(404))

    with pytest.raises(ApiStatusError):
        run(delete_this, answer(404))
    with pytest.raises(ApiStatusError):
        run(delete_this, answer(429), answer(404))


def test_a_disruption_budget_is_not_waited_for() -> None:
    causes = [{"reason": "DisruptionBudget"}]

    with pytest.raises(ApiStatusError) as caught:
        run(evict, answer(429, status(429, "TooManyRequests", causes=causes)))

    assert caught.value.is_disrupting


def test_requests_look_as_the_api_wants_them() -> None:
    _, transport, _ = run(bind, answer(201))
    assert transport.requests[0][:2] == ("POST", "/api/v1/namespaces/default/pods/a/binding")
    assert transport.requests[0].body["target"] == {"kind": "Node", "name": "node-1"}
    assert transport.requests[0].body["metadata"]["uid"] == "u1"

    _, transport, _ = run(delete_this, answer(200))
    assert transport.requests[0].body["preconditions"] == {"uid": "u1"}

    _, transport, _ = run(merge, answer(200, BODY))
    assert transport.requests[0].content_type == "application/merge-patch+json"


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert PODS.path(ObjectKey("a/b", "../x")) == "/api/v1/namespaces/a%2Fb/pods/..%2Fx"
    assert NODES.path(ObjectKey("", "n")) == "/api/v1/nodes/n"
    with pytest.raises(ValueError, match="without a name"):
        PODS.path(ObjectKey("a", ""))


def page(names: str, continue_: str = "") -> Response:
    metadata = {"resourceVersion": "9", "continue": continue_}
    items = [{"metadata": {"name": name}} for name in names]
    return answer(200, {"metadata": metadata, "items": items})


def names(items: list[RawObject]) -> str:
    return "".join(item.data["metadata"]["name"] for item in items)


def test_lists_come_page_by_page() -> None:
    client, transport, _ = scripted(page("ab", "t1"), page("cd", "t2"), page("e"))

    listed = asyncio.run(
        client.list(CONFIG_MAPS, Scope("ns", "app=x", "type=y"), resource_version="0", page_size=2)
    )

    assert (names(listed.items), listed.resource_version) == ("abcde", "9")
    assert all(item.kind == "ConfigMap" for item in listed.items)
    common = {"labelSelector": "app=x", "fieldSelector": "type=y", "limit": "2"}
    assert [request.query for request in transport.requests] == [
        common | {"resourceVersion": "0"},
        common | {"continue": "t1"},
        common | {"continue": "t2"},
    ]


def test_a_list_whose_pages_expire_is_read_at_once() -> None:
    client, transport, _ = scripted(page("ab", "t1"), answer(410, status(410)), page("xyz"))

    listed = asyncio.run(client.list(CONFIG_MAPS))

    assert names(listed.items) == "xyz"
    assert transport.requests[-1].query == {}


def change(obj: RawObject) -> RawObject:
    return obj.with_value({"n": "1"}, "data")


def test_update_with_retry_reads_again_after_a_conflict() -> None:
    client, transport, _ = scripted(
        answer(200, BODY),
        answer(409, status(409, "Conflict")),
        answer(200, BODY | {"data": {"other": "x"}}),
        answer(200, BODY),
    )

    asyncio.run(client.update_with_retry(CONFIG_MAPS, KEY, change))

    assert [request.method for request in transport.requests] == ["GET", "PUT", "GET", "PUT"]
    assert transport.requests[3].body["data"] == {"n": "1"}


def test_update_with_retry_writes_nothing_if_there_is_nothing_to_change() -> None:
    client, transport, _ = scripted(answer(200, BODY))

    asyncio.run(client.update_with_retry(CONFIG_MAPS, KEY, lambda obj: obj))

    assert [request.method for request in transport.requests] == ["GET"]


def test_update_with_retry_gives_up_some_time() -> None:
    conflicts = [answer(200, BODY), answer(409, status(409, "Conflict"))] * 10
    client, _, _ = scripted(*conflicts)

    with pytest.raises(ApiStatusError) as caught:
        asyncio.run(client.update_with_retry(CONFIG_MAPS, KEY, change))

    assert caught.value.is_conflict


def test_the_request_limit_holds_back_what_is_too_much() -> None:
    transport = ScriptedTransport(*[answer(200, BODY)] * 5)
    clock = FakeClock(hasty=True)
    client = Client(transport, limit=RequestLimit(per_second=10, burst=2), clock=clock)

    async def main() -> None:
        for _ in range(5):
            await client.get(CONFIG_MAPS, KEY)

    asyncio.run(main())

    assert clock.slept == pytest.approx([0.1, 0.1, 0.1])


def test_an_answer_of_a_proxy_is_an_error_too() -> None:
    client, _, _ = scripted(Response(404, [], b"<html>no such page</html>"))

    with pytest.raises(ApiStatusError, match="no such page"):
        asyncio.run(client.get(RESOURCE_CLAIMS, KEY))
