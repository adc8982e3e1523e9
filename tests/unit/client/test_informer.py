from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.informer import Informer, InformerFactory
from allot.client.options import Scope
from allot.client.resources import CONFIG_MAPS, PODS
from allot.client.transport import Response
from tests.unit.client.fakes import (
    LOST,
    REFUSED,
    FakeApi,
    FakeClock,
    answer,
    scripted,
    settle,
    status,
)


class Seen:
    """What handlers were told, in order."""

    def __init__(self, informer: Informer[RawObject]) -> None:
        self.log: list[str] = []
        informer.add_handlers(
            lambda obj: self.log.append(f"+{obj.metadata.name}"),
            lambda _, new: self.log.append(f"~{new.metadata.name}"),
            lambda obj: self.log.append(f"-{obj.metadata.name}"),
        )

    def take(self) -> str:
        told, self.log = " ".join(self.log), []
        return told


Scenario = Callable[[FakeApi, Informer[RawObject], Seen], Awaitable[None]]


def play(scenario: Scenario, api_streams: bool) -> None:
    async def main() -> None:
        api = FakeApi(streaming=api_streams)
        client = Client(api, clock=FakeClock(hasty=True))
        informer = Informer(client, CONFIG_MAPS)
        seen = Seen(informer)
        api.put("a")
        api.put("b")
        informer.start()
        await informer.wait_synced()
        assert seen.take() == "+a +b"
        await scenario(api, informer, seen)
        await informer.stop()
        assert {obj.metadata.name for obj in informer.store} == set(api.objects)

    asyncio.run(main())


BOTH = pytest.mark.parametrize("streaming", [True, False], ids=["streaming-list", "pages"])


@BOTH
def test_changes_arrive(streaming: bool) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        api.put("a")
        api.put("c")
        api.delete("b")
        await settle()
        assert seen.take() == "~a +c -b"
        assert informer.resource_version == str(api.revision)

    play(scenario, streaming)


@BOTH
@pytest.mark.parametrize("break_", [FakeApi.cut, FakeApi.end], ids=["cut", "ended"])
def test_a_watch_goes_on_where_it_broke_off(
    streaming: bool, break_: Callable[[FakeApi], None]
) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        lists = informer.lists
        break_(api)
        api.delete("a")
        api.put("a")
        await settle(40)
        assert seen.take() == "-a +a"
        assert informer.lists == lists, "no need to read everything again"

    play(scenario, streaming)


@BOTH
def test_deletes_that_were_missed_are_told_after_a_new_list(streaming: bool) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        api.cut()
        api.delete("a")
        api.put("c")
        api.compact()
        await settle(60)
        assert seen.take() == "-a +c", "and nothing about b, which is as it was"
        assert informer.lists == 2

    play(scenario, streaming)


@BOTH
def test_a_successor_of_the_same_name_is_one_going_and_one_coming(streaming: bool) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        api.cut()
        api.delete("a")
        api.put("a")
        api.compact()
        await settle(60)
        assert seen.take() == "-a +a"

    play(scenario, streaming)


@BOTH
def test_it_comes_back_after_any_trouble(streaming: bool) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        api.trouble += [LOST, answer(500), answer(429, retry_after="7"), answer(403), LOST]
        api.cut()
        api.put("c")
        await settle(100)
        assert seen.take() == "+c"

    play(scenario, streaming)


def test_waits_between_attempts_grow_and_start_over_after_success() -> None:
    async def main() -> None:
        api = FakeApi()
        clock = FakeClock(hasty=True)
        informer = Informer(Client(api, clock=clock), CONFIG_MAPS, chance=lambda: 0.0)
        api.trouble += [REFUSED] * 9
        informer.start()
        await informer.wait_synced()
        assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
        api.put("a")
        await settle()
        api.cut()
        await settle()
        assert clock.slept[9:] == [0.1]
        await informer.stop()

    asyncio.run(main())


def test_a_server_whose_versions_always_expire_is_not_hammered() -> None:
    async def main() -> None:
        api = FakeApi()
        clock = FakeClock(hasty=True)
        informer = Informer(Client(api, clock=clock), CONFIG_MAPS, chance=lambda: 0.0)
        api.oldest = 100
        informer.start()
        await settle(200)
        assert informer.lists > 3
        assert len(clock.slept) >= informer.lists - 2
        assert clock.slept == sorted(clock.slept)
        await informer.stop()

    asyncio.run(main())


def test_the_server_does_the_selecting() -> None:
    async def main() -> None:
        client, transport, _ = scripted(answer(422), answer(200, {"items": []}), LOST, LOST)
        scope = Scope("ns", "app=x", "spec.nodeName=n")
        informer = Informer(client, PODS, scope, chance=lambda: 0.0)
        informer.start()
        while transport.answers:
            await settle(1)
        await informer.stop()
        streaming, listing = transport.requests[:2]
        assert streaming.path == "/api/v1/namespaces/ns/pods"
        selected = {"labelSelector": "app=x", "fieldSelector": "spec.nodeName=n"}
        assert streaming.query == selected | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "300",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        assert listing.query == selected | {"resourceVersion": "0", "limit": "500"}

    asyncio.run(main())


def config_map(name: str, version: int) -> dict[str, Any]:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "metadata": metadata}


def watched(*events: tuple[str, dict[str, Any]]) -> Response:
    lines = [msgspec.json.encode({"type": type_, "object": obj}) for type_, obj in events]
    return Response(200, (), b"\n".join([*lines, b""]))


def test_a_list_and_what_follows_may_come_in_one_piece() -> None:
    async def main() -> None:
        annotations = {"k8s.io/initial-events-end": "true"}
        end = {"metadata": {"resourceVersion": "7", "annotations": annotations}}
        piece = watched(
            ("ADDED", config_map("a", 3)),
            ("ADDED", config_map("b", 5)),
            ("ADDED", config_map("c", 4)),
            ("MODIFIED", config_map("a", 6)),
            ("DELETED", config_map("c", 7)),
            ("BOOKMARK", end),
            ("MODIFIED", config_map("b", 8)),
            ("DELETED", config_map("a", 9)),
        )
        client, transport, _ = scripted(piece, LOST, LOST)
        informer = Informer(client, CONFIG_MAPS)
        seen = Seen(informer)
        informer.start()
        while transport.answers:
            await settle(1)
        await informer.stop()
        assert seen.take() == "+b +a ~b -a", "the oldest change first, then what happened later"
        assert transport.requests[1].query["resourceVersion"] == "9"

    asyncio.run(main())


LISTED = answer(
    200, {"metadata": {"resourceVersion": "5"}, "items": [config_map("a", 3), config_map("b", 4)]}
)


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([watched(("ERROR", status(500, "InternalError")))], id="error-event"),
        pytest.param(
            [watched(("ADDED", config_map("a", 3)), ("ERROR", status(500, "InternalError")))],
            id="error-event-after-objects",
        ),
        pytest.param([watched(("ERROR", status(504, "Timeout")))], id="timeout-event"),
        pytest.param([answer(500, status(500, "InternalError"))], id="server-error"),
        pytest.param([answer(400, status(400, "BadRequest"))], id="bad-request"),
        pytest.param([answer(403, status(403, "Forbidden"))], id="may-list-but-not-watch"),
        pytest.param([answer(501)], id="answer-of-a-proxy"),
        pytest.param([watched(("ADDED", config_map("a", 3)))], id="ends-before-it-is-complete"),
        pytest.param([Response(200, (), b"<html>\n")], id="not-a-watch"),
        pytest.param([LOST] * 3, id="connection-always-lost"),
    ],
)
def test_a_streaming_list_that_fails_is_replaced_by_a_paged_list(
    failures: list[Response | Exception],
) -> None:
    async def main() -> None:
        client, transport, _ = scripted(*failures, LISTED, LOST, LOST)
        informer = Informer(client, CONFIG_MAPS)
        seen = Seen(informer)
        informer.start()
        async with asyncio.timeout(60):
            await informer.wait_synced()
        await informer.stop()
        assert seen.take() == "+a +b"
        assert informer.resource_version == "5"
        *streaming, listing = transport.requests[: len(failures) + 1]
        assert all("sendInitialEvents" in request.query for request in streaming)
        assert "watch" not in listing.query

    asyncio.run(main())


def test_a_failure_of_the_watch_after_a_streaming_list_is_no_failure_of_the_list() -> None:
    async def main() -> None:
        end = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
        listed = watched(("BOOKMARK", {"metadata": end}), ("ERROR", status(500, "InternalError")))
        client, transport, _ = scripted(listed, LOST, LOST)
        informer = Informer(client, CONFIG_MAPS)
        informer.start()
        while transport.answers:
            await settle(1)
        await informer.stop()
        assert transport.requests[1].query["resourceVersion"] == "7"
        assert "watch" in transport.requests[1].query

    asyncio.run(main())


def test_bookmarks_move_the_version_on() -> None:
    async def main() -> None:
        client, transport, _ = scripted(
            answer(200, {"metadata": {"resourceVersion": "5"}, "items": []}),
            watched(("BOOKMARK", {"metadata": {"resourceVersion": "77"}})),
            LOST,
            LOST,
        )
        informer = Informer(client, CONFIG_MAPS, streaming=False)
        informer.start()
        while transport.answers:
            await settle(1)
        await informer.stop()
        watches = [request.query["resourceVersion"] for request in transport.requests[1:]]
        assert watches[:2] == ["5", "77"]

    asyncio.run(main())


def test_handlers_that_come_later_hear_of_what_is_there() -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        late = Seen(informer)
        assert late.take() == "+a +b"
        api.put("c")
        await settle()
        assert (late.take(), seen.take()) == ("+c", "+c")

    play(scenario, True)


def test_a_failing_handler_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        def fail(_: RawObject) -> None:
            raise RuntimeError("not today")

        informer.add_handlers(fail)
        after = Seen(informer)
        after.take()
        api.put("c")
        await settle()
        assert after.take() == "+c"

    with caplog.at_level(logging.ERROR):
        play(scenario, True)
    assert "default/c: an event handler failed" in caplog.text


NOT_SERVED = answer(404, status(404, "NotFound"))


@BOTH
def test_a_resource_that_is_not_served_counts_as_empty_until_it_is(
    streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        api = FakeApi(streaming=streaming)
        api.put("a")
        api.trouble = [NOT_SERVED] * 5
        informer = Informer(Client(api, clock=FakeClock(hasty=True)), CONFIG_MAPS)
        seen = Seen(informer)
        informer.start()
        async with asyncio.timeout(120):
            await informer.wait_synced()
        assert informer.list() == []
        assert informer.lists == 0
        assert api.trouble, "wait_synced does not wait until it is served"

        await settle(100)

        assert seen.take() == "+a"
        assert informer.has_synced
        assert informer.lists == 1
        await informer.stop()

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in warnings] == [
        "configmaps: not served; treated as empty until it is"
    ], "said once, however long it lasts"


def test_a_resource_that_is_no_longer_served_keeps_what_was_known() -> None:
    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        api.cut()
        api.trouble = [NOT_SERVED] * 3
        api.put("c")
        await settle(100)
        assert seen.take() == "+c", "nothing was taken as deleted"

    play(scenario, api_streams=True)


@pytest.mark.parametrize("code", [403, 500])
def test_other_refusals_are_waited_out(code: int) -> None:
    async def main() -> None:
        api = FakeApi()
        api.put("a")
        clock = FakeClock()
        api.trouble = [answer(code, status(code, "Trouble"))] * 50
        informer = Informer(Client(api, clock=clock), CONFIG_MAPS)
        informer.start()
        await settle(50)

        assert not informer.has_synced
        await informer.stop()

    asyncio.run(main())


def test_an_index_can_be_asked_for_at_any_time_and_by_several() -> None:
    def initial(obj: RawObject) -> list[str]:
        return [obj.metadata.name[:1]]

    async def scenario(api: FakeApi, informer: Informer[RawObject], _: Seen) -> None:
        for _again in range(2):
            informer.add_index("initial", initial)
        api.put("bee")
        await settle()

        names = [obj.metadata.name for obj in informer.by_index("initial", "b")]
        assert names == ["b", "bee"], "what was there, and what came since"
        with pytest.raises(ValueError, match="duplicate index initial"):
            informer.add_index("initial", lambda _: [])

    play(scenario, api_streams=True)


def test_indexes_follow() -> None:
    async def main() -> None:
        api = FakeApi()
        client = Client(api, clock=FakeClock(hasty=True))
        first = {"initial": lambda obj: [obj.metadata.name[0]]}
        informer = Informer(client, CONFIG_MAPS, indexes=first)
        for name in ("ant", "ape", "bee"):
            api.put(name)
        informer.start()
        await informer.wait_synced()
        informer.store.add_index("length", lambda obj: [str(len(obj.metadata.name))])

        def found(index: str, value: str) -> list[str]:
            return [key.name for key in informer.store.keys_by_index(index, value)]

        assert found("initial", "a") == ["ant", "ape"]
        assert found("length", "3") == ["ant", "ape", "bee"]
        api.delete("ant")
        api.put("bear")
        api.put("bee")
        await settle()
        assert found("initial", "a") == ["ape"]
        assert sorted(found("initial", "b")) == ["bear", "bee"]
        assert found("length", "4") == ["bear"]
        api.delete("bear")
        await settle()
        assert "4" not in informer.store.index_values("length")
        assert informer.get(ObjectKey("default", "bee")) in informer.by_index("initial", "b")
        await informer.stop()

    asyncio.run(main())


def test_an_event_costs_the_same_however_much_there_is() -> None:
    async def main() -> None:
        api = FakeApi()
        asked: list[str] = []

        def label(obj: RawObject) -> list[str]:
            asked.append(obj.metadata.name)
            return ["same"]

        client = Client(api, clock=FakeClock(hasty=True))
        informer = Informer(client, CONFIG_MAPS, indexes={"label": label})
        for number in range(300):
            api.put(f"n{number}")
        informer.start()
        await informer.wait_synced()
        assert len(asked) == 300
        asked.clear()
        api.put("n7")
        api.delete("n8")
        await settle()
        assert asked == ["n7"]
        await informer.stop()

    asyncio.run(main())


def test_an_index_that_fails_is_put_right_by_a_new_list(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        api = FakeApi()
        is_broken = True

        def initial(obj: RawObject) -> list[str]:
            if is_broken and obj.metadata.name == "bad":
                raise RuntimeError("what is that?")
            return [obj.metadata.name[0]]

        client = Client(api, clock=FakeClock(hasty=True))
        informer = Informer(client, CONFIG_MAPS, indexes={"initial": initial})
        informer.start()
        await informer.wait_synced()
        api.put("bad")
        await settle(60)
        assert informer.get(ObjectKey("default", "bad")) is None
        is_broken = False
        await settle(60)
        assert len(informer.by_index("initial", "b")) == 1
        await informer.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert "what is that?" in caplog.text


def test_informers_are_shared() -> None:
    async def main() -> None:
        api = FakeApi()
        factory = InformerFactory(Client(api, clock=FakeClock(hasty=True)))
        one = factory.informer(CONFIG_MAPS)
        assert factory.informer(CONFIG_MAPS) is one
        other = factory.informer(CONFIG_MAPS, Scope("ns"))
        assert other is not one
        factory.start()
        await factory.wait_synced()
        assert factory.has_synced
        await factory.stop()

    asyncio.run(main())


def test_a_version_from_the_future_leads_to_a_new_list() -> None:
    """As after a server was set back to a backup."""

    async def scenario(api: FakeApi, informer: Informer[RawObject], seen: Seen) -> None:
        causes = [{"reason": "ResourceVersionTooLarge"}]
        api.trouble.append(answer(504, status(504, "Timeout", causes=causes)))
        api.cut()
        api.delete("a")
        await settle(40)
        assert seen.take() == "-a"
        assert informer.lists == 2

    play(scenario, True)


def test_handlers_that_need_another_informer_are_called_while_that_has_objects() -> None:
    async def main() -> None:
        client = Client(FakeApi(), clock=FakeClock())
        informer, needed = Informer(client, CONFIG_MAPS), Informer(client, PODS)
        told: list[str] = []

        def note(obj: RawObject) -> None:
            told.append(f"{obj.metadata.name}{obj.metadata.resource_version}")

        def put(into: Informer[Any], name: str, version: int, uid: str = "") -> None:
            metadata = {"name": name, "resourceVersion": str(version), "uid": uid}
            into.put(RawObject({"metadata": metadata}))

        put(informer, "a", 1)
        informer.add_handlers(note, lambda _, new: note(new), note, needs=needed)
        put(informer, "a", 2)
        put(needed, "x", 3)
        assert told == [], "and of what exists only that is told which changes from now on"
        put(informer, "a", 4)
        put(informer, "b", 5)
        put(needed, "y", 6)
        needed.drop(ObjectKey("", "x"))
        put(needed, "y", 7, uid="successor")
        informer.drop(ObjectKey("", "b"))
        assert told == ["a4", "b5", "b5"]
        needed.drop(ObjectKey("", "y"))
        put(informer, "a", 8)
        informer.drop(ObjectKey("", "a"))
        assert told == ["a4", "b5", "b5"]
        put(needed, "y", 9)
        put(informer, "c", 10)
        informer.add_handlers(note, needs=needed)
        assert told[3:] == ["c10", "c10"], "the second is told what exists"

    asyncio.run(main())
