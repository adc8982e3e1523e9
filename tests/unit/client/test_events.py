from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from allot.apiserver.watch_cache.plain_events import plain_event
from allot.client.client import Client
from allot.client.event_correlation import CorrelationLimits
from allot.client.event_recorder import IDLE_CHECK_SECONDS, EventLimits, EventRecorder
from allot.client.events import NORMAL, WARNING, ObjectReference, shortened
from allot.client.resources import CORE_EVENTS
from allot.client.transport import Response
from tests.unit.client.fakes import FakeClock, Request, ScriptedTransport, answer, settle, status

POD = ObjectReference("v1", "Pod", "ns", "web-1", "uid-1", "17")
FINE = answer(201, {"metadata": {}})


class Recording:
    is_busy = False

    def __init__(self, limits: EventLimits, *answers: Response | Exception) -> None:
        self.transport = ScriptedTransport(*answers, *[FINE] * 100)
        self.clock = FakeClock()
        client = Client(self.transport, clock=self.clock)
        self.recorder = EventRecorder(
            client, "allot-scheduler", "host-1", limits, is_busy=lambda: self.is_busy
        )

    def fail(self, note: str = "no nodes", about: ObjectReference = POD) -> None:
        self.recorder.event(about, WARNING, "FailedScheduling", "Scheduling", note)

    def succeed(self, about: ObjectReference = POD) -> None:
        self.recorder.event(about, NORMAL, "Scheduled", "Binding", "to node-1", is_routine=True)

    @property
    def asked(self) -> list[Request]:
        return self.transport.requests

    def bodies(self) -> list[Any]:
        return [request.body for request in self.asked]


def play(
    scenario: Callable[[Recording], Awaitable[None]],
    *answers: Response | Exception,
    limits: EventLimits = EventLimits(),  # noqa: B008 - a value
) -> None:
    async def main() -> None:
        recording = Recording(limits, *answers)
        recording.recorder.start()
        await scenario(recording)
        await recording.recorder.stop()

    asyncio.run(main())


def test_an_event_says_it_all() -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        (request,) = recording.asked
        assert request[:2] == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
        name = request.body["metadata"].pop("name")
        assert name.startswith("web-1.")
        assert request.body == {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"namespace": "ns"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "type": "Warning",
            "reason": "FailedScheduling",
            "action": "Scheduling",
            "note": "no nodes",
            "reportingController": "allot-scheduler",
            "reportingInstance": "host-1",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "ns",
                "name": "web-1",
                "uid": "uid-1",
                "resourceVersion": "17",
            },
        }

    play(scenario)


def test_servers_read_events_in_few_steps() -> None:
    """Which depends on the order of their fields."""

    async def scenario(recording: Recording) -> None:
        await recording.clock.advance(0.25)
        recording.fail()
        await settle()
        (request,) = recording.asked
        found = plain_event(msgspec.json.encode(request.body))
        assert found is not None
        assert found[1] == request.body

    play(scenario)


def test_core_events_have_first_and_last_timestamps() -> None:
    """As kubelets and controllers write them: `kubectl get events --sort-by=.lastTimestamp`."""

    async def main() -> None:
        transport, clock = ScriptedTransport(*[FINE] * 10), FakeClock()
        client = Client(transport, clock=clock)
        recorder = EventRecorder(client, "manager", "", resource=CORE_EVENTS)
        recorder.start()
        kubelet = recorder.for_component("kubelet", "n1")
        container = POD._replace(field_path="spec.containers{c}")
        kubelet.event(container, NORMAL, "Started", "Started", "Container started")
        await settle()
        await clock.advance(30)
        kubelet.event(container, NORMAL, "Started", "Started", "Container started")
        await settle()
        await recorder.stop()
        create, repeat = transport.requests
        assert create[:2] == ("POST", "/api/v1/namespaces/ns/events")
        body = create.body
        assert body["involvedObject"]["fieldPath"] == "spec.containers{c}"
        assert body["source"] == {"component": "kubelet", "host": "n1"}
        assert (body["reportingComponent"], body["reportingInstance"]) == ("kubelet", "n1")
        assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-01T00:00:00Z"
        assert body["count"] == 1
        assert "eventTime" not in body
        assert repeat.method == "PATCH"
        assert repeat.body == {"count": 2, "lastTimestamp": "2026-01-01T00:00:30Z"}

    asyncio.run(main())


def test_the_same_again_is_counted_and_not_written_too_often() -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        recording.fail(about=POD._replace(resource_version="18"))
        recording.fail()
        await recording.clock.advance(4.9)
        assert len(recording.asked) == 1
        await recording.clock.advance(0.2)
        patch = recording.asked[1]
        assert patch.method == "PATCH"
        assert patch.path.endswith(recording.asked[0].body["metadata"]["name"])
        series = {"count": 3, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
        assert patch.body == {"series": series}
        await recording.clock.advance(60)
        assert len(recording.asked) == 2
        recording.fail()
        await settle()
        assert recording.asked[2].body["series"]["count"] == 4

    play(scenario)


def test_other_words_and_a_long_silence_make_another_event() -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail("one")
        await settle()
        recording.fail("two")
        await settle()
        await recording.clock.advance(361)
        recording.fail("one")
        await settle()
        assert [request.method for request in recording.asked] == ["POST"] * 3
        assert len({body["metadata"]["name"] for body in recording.bodies()}) == 3

    play(scenario)


def test_an_event_that_has_expired_is_written_anew() -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        recording.fail()
        await recording.clock.advance(6)
        assert [request.method for request in recording.asked] == ["POST", "PATCH", "POST"]
        assert recording.asked[2].body["series"]["count"] == 2

    play(scenario, FINE, answer(404))


def test_refused_events_are_not_retried() -> None:
    """The namespace is gone, but the object in it is still talked about."""

    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        recording.fail()
        await recording.clock.advance(6)
        assert [request.method for request in recording.asked] == ["POST", "PATCH", "POST"]
        await recording.clock.advance(60)
        assert len(recording.asked) == 3

    play(scenario, FINE, *[GONE] * 90)


def test_a_flood_of_events_about_one_object_is_limited() -> None:
    async def scenario(recording: Recording) -> None:
        for number in range(30):
            recording.fail(str(number))
        recording.succeed()
        await settle(200)
        assert recording.recorder.silenced == 5
        assert len(recording.asked) == 26
        assert recording.asked[-1].body["reason"] == "Scheduled"
        await recording.clock.advance(300)
        recording.fail("later")
        recording.fail("too much")
        assert recording.recorder.silenced == 6

    play(scenario)


def test_the_oldest_are_dropped_when_there_are_too_many() -> None:
    async def main() -> None:
        recording = Recording(EventLimits(queue=3))
        for number in range(5):
            recording.fail(str(number))
        assert recording.recorder.dropped == 2
        recording.recorder.start()
        await settle()
        assert sorted(body["note"] for body in recording.bodies()) == ["2", "3", "4"]
        await recording.recorder.stop()

    asyncio.run(main())


NOT_SERVED = answer(404, status(404, "NotFound"))
NOT_ALLOWED = answer(403, status(403, "Forbidden"))


@pytest.mark.parametrize("refusal", [NOT_SERVED, NOT_ALLOWED], ids=["not-served", "not-allowed"])
def test_core_events_where_there_are_no_others(refusal: Response) -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        recording.succeed()
        await recording.clock.advance(IDLE_CHECK_SECONDS)
        assert [request.path for request in recording.asked] == [
            "/apis/events.k8s.io/v1/namespaces/ns/events",
            "/api/v1/namespaces/ns/events",
            "/api/v1/namespaces/ns/events",
        ]
        body = recording.asked[1].body
        assert (body["apiVersion"], body["message"]) == ("v1", "no nodes")
        assert body["involvedObject"]["name"] == "web-1"
        assert body["source"] == {"component": "allot-scheduler", "host": "host-1"}
        assert "note" not in body

    play(scenario, refusal)


GONE = answer(404, status(404, "NotFound", kind="namespaces", name="ns"))
GOING = answer(403, status(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}]))


@pytest.mark.parametrize("refusal", [GONE, GOING], ids=["gone", "going"])
def test_a_namespace_that_is_gone_needs_no_events(refusal: Response) -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail()
        await settle()
        assert (len(recording.asked), recording.recorder.dropped) == (1, 1)
        recording.succeed()
        await recording.clock.advance(IDLE_CHECK_SECONDS)
        assert recording.asked[1].path.startswith("/apis/events.k8s.io/")

    play(scenario, refusal)


def test_stopping_writes_what_is_left() -> None:
    async def main() -> None:
        recording = Recording(EventLimits())
        recording.recorder.start()
        recording.fail()
        await settle()
        recording.fail()
        recording.succeed()
        await recording.recorder.stop()
        assert sorted(request.method for request in recording.asked) == ["PATCH", "POST", "POST"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("note", "cut"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="fits"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="too-long"),
        pytest.param("é" * 600, "é" * 510 + " ...", id="bytes-count"),
        pytest.param("x" + "é" * 600, "x" + "é" * 509 + " ...", id="no-half-characters"),
    ],
)
def test_notes_are_cut(note: str, cut: str) -> None:
    assert shortened(note) == cut


def test_long_names_still_make_names() -> None:
    async def scenario(recording: Recording) -> None:
        recording.fail(about=POD._replace(name="a" * 253))
        await settle()
        assert len(recording.asked[0].body["metadata"]["name"]) == 253

    play(scenario)


def test_similar_events_are_aggregated() -> None:
    async def scenario(recording: Recording) -> None:
        for number in range(20):
            recording.fail(f"{number} nodes")
            recording.succeed()
        await settle(400)
        counts = {
            body["note"]: body.get("series", {}).get("count", 1) for body in recording.bodies()
        }
        few = {f"{number} nodes": 1 for number in range(5)}
        combined = "(combined from similar events): 5 nodes"
        assert counts == few | {"to node-1": 20, combined: 15}

        await recording.clock.advance(601)
        recording.fail("20 nodes")
        await settle()
        assert recording.bodies()[-1]["note"] == "20 nodes"

    play(scenario, limits=EventLimits(correlation=CorrelationLimits(similar=5)))


def test_writes_come_at_a_limited_rate_and_memory_is_bounded() -> None:
    async def main() -> None:
        limits = EventLimits(
            writes_per_second=10,
            writes_at_once=20,
            queue=100,
            writers=1,
            correlation=CorrelationLimits(remembered=50),
        )
        recording = Recording(limits, *[FINE] * 1000)
        recording.recorder.start()
        for number in range(10_000):
            recording.fail(about=POD._replace(name=f"pod-{number}", uid=str(number)))
        await settle(200)
        assert len(recording.asked) == 20
        for _ in range(50):
            await recording.clock.advance(0.1)
            await settle(3)
        assert 60 <= len(recording.asked) <= 71
        recorder = recording.recorder
        assert recorder.dropped == 9_900
        known = recorder._correlator
        for kept in (known._series, known._allowances, known._similar):
            assert len(kept) == 50
        await recorder.stop(0)

    asyncio.run(main())


def test_an_object_with_many_events_keeps_its_allowance() -> None:
    """The buckets that are forgotten are those of objects that were quiet longest."""

    async def main() -> None:
        recording = Recording(EventLimits(correlation=CorrelationLimits(remembered=10, burst=3)))
        for number in range(100):
            recording.fail(f"try {number}")
            recording.fail(about=POD._replace(name=f"pod-{number}", uid=str(number)))
        assert recording.recorder.silenced == 97

    asyncio.run(main())


def test_events_of_routine_wait_while_their_component_is_busy() -> None:
    async def scenario(recording: Recording) -> None:
        recording.is_busy = True
        recording.succeed()
        await recording.clock.advance(2)
        assert not recording.asked
        recording.fail()
        await settle()
        assert [body["reason"] for body in recording.bodies()] == ["FailedScheduling"]

        recording.is_busy = False
        await recording.clock.advance(0.1)
        assert len(recording.asked) == 2

    play(scenario)


def test_events_of_routine_do_not_hold_up_what_they_are_about() -> None:
    async def scenario(recording: Recording) -> None:
        await settle()  # nothing to write
        recording.succeed()
        await settle()
        assert not recording.asked
        await recording.clock.advance(IDLE_CHECK_SECONDS)
        assert [body["reason"] for body in recording.bodies()] == ["Scheduled"]

    play(scenario)


def test_a_component_that_is_always_busy_writes_events_late() -> None:
    async def scenario(recording: Recording) -> None:
        recording.is_busy = True
        recording.succeed()
        await recording.clock.advance(EventLimits().busy_seconds + 0.1)
        assert len(recording.asked) == 1

    play(scenario)


def test_a_queue_that_fills_up_does_not_wait() -> None:
    async def scenario(recording: Recording) -> None:
        recording.is_busy = True
        for number in range(8):
            recording.succeed(POD._replace(name=f"web-{number}"))
        await settle(40)

        assert len(recording.asked) == 3, "half of the queue's limit may wait"
        assert not recording.recorder.dropped

    play(scenario, limits=EventLimits(queue=10))


def test_waiting_events_are_written_at_the_end() -> None:
    async def main() -> None:
        recording = Recording(EventLimits())
        recording.recorder.start()
        recording.is_busy = True
        recording.succeed()
        await settle()
        stopping = asyncio.create_task(recording.recorder.stop())
        await settle()
        await recording.clock.advance(0.1)
        await stopping

        assert len(recording.asked) == 1

    asyncio.run(main())
