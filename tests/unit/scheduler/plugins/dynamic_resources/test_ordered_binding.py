"""The last write of a pod's claims and its binding are one message, where the server can run them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.managed_fields import without_managed_fields
from allot.client.client import Client
from allot.client.errors import TransportError
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.client.transport import NOT_RUN, ClusterTransport, Response
from allot.scheduler.core.binding_cycle import run_pre_bind_and_bind
from allot.scheduler.framework.bind_errors import BoundElsewhereError
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.durations import BIND, PRE_BIND, Durations
from allot.scheduler.framework.handle import NoPodEvents
from allot.scheduler.framework.plugins import PreBindPlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Code, Status
from allot.scheduler.plugins.default_binder import DefaultBinder
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.binding_reports import BindingWaitReporter
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait, NodeGoneError
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_device, a_slice, an_allocation
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import NOW, Bench
from tests.unit.scheduler.plugins.dynamic_resources.server import (
    Disturbed,
    Scene,
    a_claim_write_scene,
)

IN_ONE_MESSAGE = ["PUT claim", "POST binding"]


class _Sent:
    """A request that was sent: its response is awaited, or not."""

    def __init__(self, response: Callable[[], Coroutine[Any, Any, Response]]) -> None:
        self._response = response

    def __await__(self) -> Generator[Any, Any, Response]:
        return self._response().__await__()


class _InOrder(Disturbed):
    """Runs requests as a link does, when all of them are there."""

    def __init__(self, way: LinkedWay, count: int) -> None:
        super().__init__(way)
        self._way = way
        self._turns = [asyncio.Event() for _ in range(count)]
        self._has_failed = False

    def request(self, *arguments: Any, **rest: Any) -> _Sent:  # type: ignore[override]
        number = len(self.asked)
        self.asked.append("")
        if len(self.asked) == len(self._turns):
            self._way.messages += 1
            self._turns[0].set()
        return _Sent(partial(self._response, number, *arguments, **rest))

    async def _response(self, number: int, *arguments: Any, **rest: Any) -> Response:
        await self._turns[number].wait()
        if self._has_failed:
            return Response(NOT_RUN, (), b"{}")
        answer = await self._way.run(*arguments, **rest)
        self._has_failed = answer.code >= 300
        for turn in self._turns[number + 1 : number + 2]:
            turn.set()
        return answer


class LinkedWay(Disturbed, ClusterTransport):
    """Counts messages, and answers single requests as it is told."""

    messages = 0

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.way._transport)
        self.answers: dict[int, Response] = {}
        """By number of the request, instead of asking the server."""

    def in_order(self, count: int) -> _InOrder:
        return _InOrder(self, count)

    async def request(self, *arguments: Any, **rest: Any) -> Response:
        self.messages += 1
        return await self.run(*arguments, **rest)

    async def run(self, method: str, path: str, *arguments: Any) -> Response:
        number = len(self.asked) + 1
        if number in self.answers:
            self.asked.append(f"{method} {path.rsplit('/', 1)[-1]}")
            return self.answers[number]
        return await super().request(method, path, *arguments)


class UnlinkedWay(LinkedWay):
    """A server of the same cluster that runs no requests in order."""

    def in_order(self, count: int) -> None:  # type: ignore[override]
        return None


class Writes(PreBindPlugin):
    """Another plugin with something to do before the binding."""

    name = "Writes"

    def __init__(self) -> None:
        self.had_binding = False

    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        return True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.had_binding = state.binding is not None
        return SUCCESS


class Attempt:
    """A pod with claims and a node, from reserve on."""

    def __init__(self, scene: Scene, way: LinkedWay, bench: Bench, pod: PodInfo) -> None:
        self.scene, self.way, self.bench, self.pod = scene, way, bench, pod
        self.more: list[PreBindPlugin] = []
        self.points: list[tuple[str, Code]] = []
        self.client = Client(way)

    @classmethod
    async def of(
        cls, scene: Scene, *claims: str, way: type[LinkedWay] = LinkedWay, **fields: Any
    ) -> Attempt:
        pod = await scene.pod("pod", *claims)
        linked = way(scene)
        stored = [await scene.stored(name) for name in claims]
        bench = Bench(*stored, client=Client(linked), **fields)
        assert bench.reserve(pod).is_success
        return cls(scene, linked, bench, pod)

    async def bind(self) -> Status:
        profile = Profile("p", [self.bench.plugin, *self.more, DefaultBinder(self.client)])
        durations = Durations(lambda point, code: lambda _: self.points.append((point, code)))
        return await run_pre_bind_and_bind(profile, durations, self.bench.state, self.pod, "node-1")

    async def node(self) -> str:
        found = await self.scene.others.find(PODS, self.pod.key)
        return found.node_name if found is not None else ""


def a_gate(attempt: Attempt) -> BindingGate:
    tracker = attempt.bench.tracker
    wait = BindingWait(tracker, timedelta(seconds=1), lambda: NOW, lambda _: False)
    writer = ClaimWriter(attempt.client, tracker.get)
    reporter = BindingWaitReporter(NoPodEvents(), None)
    return BindingGate(tracker, writer, wait, reporter, lambda work: work.close())


def played(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with a_claim_write_scene() as scene:
            await scene.claim()
            await story(scene)

    asyncio.run(main())


async def consumers(scene: Scene, name: str = "claim") -> list[str]:
    return [consumer.name for consumer in (await scene.stored(name)).status.reserved_for]


def test_the_claim_and_the_binding_are_one_message() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")

        assert (await attempt.bind()).is_success

        assert (attempt.way.asked, attempt.way.messages) == (IN_ONE_MESSAGE, 1)
        assert await consumers(scene) == ["pod"]
        assert await attempt.node() == "node-1"
        known = attempt.bench.tracker.get(ObjectKey("default", "claim"))
        assert without_managed_fields(known) == without_managed_fields(await scene.stored())
        assert attempt.points == [(PRE_BIND, Code.SUCCESS), (BIND, Code.SUCCESS)]

    played(story)


def test_what_is_known_of_a_claim_is_what_is_stored() -> None:
    """Also of its times, which are stored in whole seconds: the answer does not repeat them."""

    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.bench.plugin._gate = a_gate(attempt)
        attempt.bench.plugin._utc_now = lambda: NOW.replace(microsecond=5)

        assert (await attempt.bind()).is_success

        stored = await scene.stored()
        assert stored.status.allocation is not None
        assert stored.status.allocation.allocation_timestamp == NOW
        known = attempt.bench.tracker.get(ObjectKey("default", "claim"))
        assert without_managed_fields(known) == without_managed_fields(stored)

    played(story)


def test_a_reservation_and_the_binding_are_one_message() -> None:
    async def story(scene: Scene) -> None:
        await scene.allocate(an_allocation("gpu-0", node="node-1"))
        attempt = await Attempt.of(scene, "claim")

        assert (await attempt.bind()).is_success

        assert (attempt.way.asked, attempt.way.messages) == (["PUT status", "POST binding"], 1)
        assert await attempt.node() == "node-1"

    played(story)


def test_of_several_claims_the_last_is_written_with_the_binding() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim("other")
        two = a_slice(a_device("gpu-0"), a_device("gpu-1"), name="s", node="node-1")
        attempt = await Attempt.of(scene, "claim", "other", slices=[two])

        assert (await attempt.bind()).is_success

        assert attempt.way.asked == ["PUT claim", "PUT other", "POST binding"]
        assert attempt.way.messages == 2
        assert await attempt.node() == "node-1"

    played(story)


def test_after_a_conflict_the_claim_is_written_again_and_then_the_pod_bound() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.way.before[1] = scene.touch

        assert (await attempt.bind()).is_success

        assert attempt.way.asked == ["PUT claim", "GET claim", "PUT claim", "POST binding"]
        assert await consumers(scene) == ["pod"]
        assert await attempt.node() == "node-1"

    played(story)


def test_a_pod_whose_claim_cannot_be_written_is_not_bound() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.way.before[1] = lambda: scene.allocate(an_allocation("gpu-9"))

        status = await attempt.bind()

        assert status.code is Code.ERROR
        assert status.message == (
            'running PreBind plugin "DynamicResources": '
            "claim default/claim got allocated elsewhere in the meantime"
        )
        assert "POST binding" not in attempt.way.asked
        assert attempt.points == [(PRE_BIND, Code.ERROR)]
        attempt.bench.plugin.unreserve(attempt.bench.state, attempt.pod, "node-1")
        await attempt.bench.finish()
        assert await consumers(scene) == []
        assert await attempt.node() == ""

    played(story)


def test_what_the_server_could_not_do_is_done_again() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.way.answers[1] = Response(503, (), b"{}")

        assert (await attempt.bind()).is_success

        assert attempt.way.asked == ["PUT claim", "PUT claim", "POST binding"]
        assert await attempt.node() == "node-1"

    played(story)


class _Lost(_InOrder):
    """A link that is lost when something is to be sent."""

    def request(self, *arguments: Any, **rest: Any) -> _Sent:  # type: ignore[override]
        raise TransportError("lost", was_sent=False)


class LostWay(LinkedWay):
    """Can send nothing in order any more."""

    def in_order(self, count: int) -> _Lost:
        return _Lost(self, count)


def test_what_could_not_be_sent_in_order_is_sent_one_by_one() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim", way=LostWay)

        assert (await attempt.bind()).is_success

        assert (attempt.way.asked, attempt.way.messages) == (IN_ONE_MESSAGE, 2)
        assert await attempt.node() == "node-1"

    played(story)


def test_a_binding_that_failed_for_the_moment_is_sent_again() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.way.answers[2] = Response(503, (), b"{}")

        assert (await attempt.bind()).is_success

        assert attempt.way.asked == ["PUT claim", "POST binding", "POST binding"]
        assert await attempt.node() == "node-1"

    played(story)


@pytest.mark.parametrize("way", [LinkedWay, UnlinkedWay], ids=["in-order", "one-by-one"])
def test_a_binding_that_is_refused_gives_the_claim_back(way: type[LinkedWay]) -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim", way=way)
        attempt.way.answers[2] = Response(403, (), b'{"kind":"Status","code":403,"message":"no"}')

        status = await attempt.bind()

        assert (status.code, status.message) == (Code.ERROR, "no")
        assert attempt.points == [(PRE_BIND, Code.SUCCESS), (BIND, Code.ERROR)]
        assert await consumers(scene) == ["pod"]
        attempt.bench.plugin.unreserve(attempt.bench.state, attempt.pod, "node-1")
        await attempt.bench.finish()
        assert await consumers(scene) == []

    played(story)


def test_a_pod_that_another_scheduler_has_bound_stays_where_it_is() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        attempt.way.before[2] = lambda: scene.bind(attempt.pod, "node-2")

        status = await attempt.bind()

        assert isinstance(status.error, BoundElsewhereError)
        assert await attempt.node() == "node-2"

    played(story)


def test_a_server_that_runs_nothing_in_order_gets_two_messages() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim", way=UnlinkedWay)

        assert (await attempt.bind()).is_success

        assert (attempt.way.asked, attempt.way.messages) == (IN_ONE_MESSAGE, 2)
        assert await attempt.node() == "node-1"

    played(story)


def test_how_a_binding_ended_can_be_asked_again() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        binder, state = DefaultBinder(attempt.client), attempt.bench.state
        binding = binder.ordered_binding(state, attempt.pod, "node-1")
        assert binding is not None
        assert await binding.outcome() is None, "it is not sent"
        stored = await scene.stored()
        sent = binding.follow(lambda client: client.submit_update(RESOURCE_CLAIMS, stored))
        assert sent is not None
        await sent

        assert [await binding.outcome(), await binding.outcome()] == [SUCCESS, SUCCESS]
        assert attempt.way.asked == ["PUT claim", "POST binding"]

    played(story)


def test_a_claim_that_is_reserved_already_leaves_only_the_binding() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        claim = await scene.allocate(an_allocation("gpu-0", node="node-1"), attempt.pod)
        attempt.bench = Bench(claim, client=attempt.client)
        attempt.bench.reserve(attempt.pod)

        assert (await attempt.bind()).is_success

        assert attempt.way.asked == ["POST binding"]

    played(story)


def test_only_the_last_plugin_of_pre_bind_may_send_the_binding() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        later = Writes()
        attempt.more.append(later)

        assert (await attempt.bind()).is_success

        assert (attempt.way.asked, attempt.way.messages) == (IN_ONE_MESSAGE, 2)
        assert later.had_binding
        assert await attempt.node() == "node-1"

    played(story)


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_pod_that_is_deleted_meanwhile_leaves_no_binding_under_way(turns: int) -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        before = asyncio.all_tasks()
        binding = asyncio.create_task(attempt.bind())
        for _ in range(turns):
            await asyncio.sleep(0)

        binding.cancel()
        await asyncio.wait((binding,))
        await asyncio.sleep(0)

        assert binding.cancelled() or binding.result().is_success
        assert asyncio.all_tasks() == before

    played(story)


def with_conditions(claim: ResourceClaim) -> ResourceClaim:
    """The claim as admission may change it: with a condition for its device."""
    allocation = an_allocation("gpu-0", node="node-1")
    (result,) = allocation.devices.results
    conditioned = replace(result, binding_conditions=("Attached",))
    devices = replace(allocation.devices, results=(conditioned,))
    status = replace(claim.status, allocation=replace(allocation, devices=devices))
    return replace(claim, status=status)


@pytest.mark.parametrize("is_sent", [True, False], ids=["sent", "not-sent"])
def test_a_pod_that_is_bound_does_not_wait_for_its_devices(is_sent: bool) -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        gate = a_gate(attempt)
        binding = DefaultBinder(attempt.client).ordered_binding(
            attempt.bench.state, attempt.pod, "node-1"
        )
        assert binding is not None
        claim = await scene.stored()

        async def write(may_bind: bool) -> list[ResourceClaim]:
            assert may_bind
            stored = await scene.stored()
            if is_sent:
                sent = binding.follow(lambda client: client.submit_update(RESOURCE_CLAIMS, stored))
                assert sent is not None
                await sent
            return [with_conditions(claim)]

        waiting = gate.write_and_wait(attempt.pod, "node-1", [claim], write, binding)
        if is_sent:
            await waiting
        else:
            with pytest.raises(NodeGoneError):
                await waiting

    played(story)


class RefusesTogether(LinkedWay):
    """Refuses the first write that reserves a claim for several of the pods that wait."""

    together = ("x", "y")

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.has_refused = asyncio.Event()

    async def run(self, method: str, path: str, *arguments: Any) -> Response:
        body = (arguments[1] if len(arguments) > 1 else None) or b""
        if not self.has_refused.is_set() and all(
            f'"name":"{name}"'.encode() in body for name in self.together
        ):
            self.has_refused.set()
            return Response(422, (), b'{"kind":"Status","code":422,"message":"not together"}')
        return await super().run(method, path, *arguments)


@pytest.mark.parametrize("turns", range(4))
def test_changes_that_are_refused_together_are_written_apart_from_bindings(turns: int) -> None:
    """The binding of a pod ends with the task of that pod: another one, which writes for both, would wait for ever."""

    async def story(scene: Scene) -> None:
        await scene.allocate(an_allocation("gpu-0", node="node-1"))
        way = RefusesTogether(scene)
        client, claim = Client(way), await scene.stored()
        pods = [await scene.pod(name, "claim") for name in ("first", "x", "y")]
        benches = [Bench(claim, client=client) for _ in pods]
        writer = ClaimWriter(client, benches[0].tracker.get)
        tasks = []
        for bench, pod in zip(benches, pods, strict=True):
            bench.plugin._writer = writer
            assert bench.reserve(pod).is_success
            profile = Profile("p", [bench.plugin, DefaultBinder(client)])
            bind = run_pre_bind_and_bind(profile, Durations(), bench.state, pod, "node-1")
            tasks.append(asyncio.create_task(bind))
        await way.has_refused.wait()
        for _ in range(turns):
            await asyncio.sleep(0)

        tasks[2].cancel()

        assert (await tasks[1]).is_success
        assert (await tasks[0]).is_success
        await asyncio.gather(tasks[2], return_exceptions=True)
        found = await scene.others.get(PODS, pods[2].key)
        assert found.node_name == ""

    played(story)


class OwnBinder(DefaultBinder):
    """An out-of-tree plugin that refines how pods are bound."""

    calls = 0

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.calls += 1
        return await super().bind(state, pod, node_name)


def test_a_binder_that_overrides_bind_is_asked() -> None:
    async def story(scene: Scene) -> None:
        attempt = await Attempt.of(scene, "claim")
        binder = OwnBinder(attempt.client)
        profile = Profile("p", [attempt.bench.plugin, binder])

        status = await run_pre_bind_and_bind(
            profile, Durations(), attempt.bench.state, attempt.pod, "node-1"
        )

        assert status.is_success
        assert (binder.calls, attempt.way.messages) == (1, 2)

    played(story)
