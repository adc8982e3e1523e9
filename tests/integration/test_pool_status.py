"""Questions about pools are answered, each once, and cleared away (KEP-5677): server and controllers in one process.

Time is virtual: hours pass in milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from allot.apiserver.admission.creation_limits import CreationLimit
from allot.client.client import Client
from allot.client.clock import LoopClock
from allot.client.in_process import InProcessTransport
from allot.client.retries import NEVER
from allot.client.transport import JSON, Query, Response, Stream
from allot.controllers.manager import ControllerManager
from allot.controllers.pool_status import ResourcePoolStatusRequestController, controller
from allot.controllers.pool_status.answers import answering_request
from allot.features import DEFAULTS, RESOURCE_POOL_STATUS, FeatureGates, with_overrides
from allot.rules import (
    KEP_FIELDS_IN_V1ALPHA3,
    REPORT_INCOMPLETE_POOLS,
    UNKNOWN_DRIVER_WARNING,
    RuleSet,
)
from allot.storage.memory import MemoryStore
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import run_in_virtual_time

DRIVER = "gpu.example.com"
V1 = "/apis/resource.k8s.io/v1"
CLAIMS = f"{V1}/namespaces/default/resourceclaims"
QUESTIONS = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
KEP_QUESTIONS = "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests"
HOUR = 3600.0


class StoryClock(LoopClock):
    """Begins with the real day, because the server stamps that; goes on as the loop does."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)

    def today(self) -> datetime:
        return self._began + timedelta(seconds=self.now())


class Interposed(InProcessTransport):
    """A way to the server on which something can happen to status writes."""

    def __init__(self, server: LocalServer) -> None:
        super().__init__(server.server.app, TOKEN)
        self.status_writes = 0
        self.written: list[dict[str, Any]] = []
        self.is_kubernetes = False
        """Whether the server pretends to have no version of the KEP."""
        self.hidden = "/none"
        """How the path of a resource ends that the server does not have."""
        self.before_write: Callable[[int], Awaitable[Response | None]] | None = None
        """Called with the number of the write; what it returns is the answer instead."""

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if self.is_kubernetes and path.startswith(KEP_QUESTIONS):
            return refusal(404, "NotFound")
        if path.endswith("/status"):
            self.status_writes += 1
            self.written.append(msgspec.json.decode(body or b"{}"))
            if self.before_write is not None:
                answer = await self.before_write(self.status_writes)
                if answer is not None:
                    return answer
        return await super().request(method, path, query, body, content_type, headers)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        if path.endswith(self.hidden):
            yield Stream(404, (), _nothing())
            return
        given = {"idle_seconds": idle_seconds, "headers": headers}
        async with super().stream(path, query, **given) as opened:  # type: ignore[arg-type]
            yield opened


async def _nothing() -> AsyncIterator[bytes]:
    yield b"404 page not found"


def refusal(code: int, reason: str) -> Response:
    status = {"kind": "Status", "code": code, "reason": reason, "message": f"no: {reason}"}
    return Response(code, (), msgspec.json.encode(status))


class UnclosedStore(MemoryStore):
    """Outlives its server, as a file would."""

    is_kept = True

    async def close(self) -> None:
        if not self.is_kept:
            await super().close()


class Scene:
    """A server, controllers, and what tests do with them."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.clock = StoryClock()
        self.transports: list[Interposed] = []
        self.managers: list[ControllerManager] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, gates: FeatureGates = DEFAULTS, hidden: str = "/none") -> None:
        transport = Interposed(self.server)
        transport.hidden = hidden
        client = Client(transport, clock=self.clock, retry=NEVER)
        manager = ControllerManager(client, [ResourcePoolStatusRequestController], gates)
        self.transports.append(transport)
        self.managers.append(manager)
        self._tasks.append(asyncio.create_task(manager.run()))
        if RESOURCE_POOL_STATUS in gates:
            await self.until(lambda: manager.is_ready)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def until(self, holds: Callable[[], Any], seconds: float = 120.0) -> None:
        end = self.clock.now() + seconds
        while not (await found if isinstance(found := holds(), Awaitable) else found):
            assert self.clock.now() < end, f"not within {seconds} s"
            await asyncio.sleep(0.02)

    async def publish(
        self,
        name: str,
        count: int = 2,
        *,
        pool: str = "node-1",
        slices: int = 1,
        generation: int = 1,
    ) -> None:
        spec = {
            "driver": DRIVER,
            "nodeName": "node-1",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
            "devices": [{"name": f"{name}-{number}"} for number in range(count)],
        }
        await self.server.post(f"{V1}/resourceslices", {"metadata": {"name": name}, "spec": spec})

    async def allocate(self, claim: str, device: str) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        body = {"metadata": {"name": claim}, "spec": {"devices": {"requests": [request]}}}
        created = await self.server.post(CLAIMS, body)
        result = {"request": "r", "driver": DRIVER, "pool": "node-1", "device": device}
        created["status"] = {"allocation": {"devices": {"results": [result]}}}
        answer = await self.server.ask("PUT", f"{CLAIMS}/{claim}/status", created)
        assert answer.code == 200, answer

    async def ask(self, name: str = "q", path: str = QUESTIONS, **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"driver": DRIVER} | spec}
        await self.server.post(path, body)

    async def status(self, name: str = "q", path: str = QUESTIONS) -> dict[str, Any] | None:
        found: dict[str, Any] | None = (await self.server.get(f"{path}/{name}")).get("status")
        return found

    async def answer(self, name: str = "q", path: str = QUESTIONS) -> dict[str, Any]:
        await self.until(lambda: self.status(name))
        found = await self.status(name, path)
        assert found is not None
        return found

    async def is_gone(self, name: str = "q") -> bool:
        return (await self.server.ask("GET", f"{QUESTIONS}/{name}")).code == 404

    def metric(self, line: str) -> float:
        """The sum over all controllers."""
        pages = [generate_latest(manager.registry).decode() for manager in self.managers]
        lines = [each for page in pages for each in page.splitlines()]
        return sum(float(each.split()[-1]) for each in lines if each.startswith(line + " "))


@asynccontextmanager
async def a_pool_status_scene(
    controllers: int = 1, gates: FeatureGates = DEFAULTS
) -> AsyncIterator[Scene]:
    async with LocalServer() as server:
        scene = Scene(server)
        for _ in range(controllers):
            await scene.start(gates)
        try:
            yield scene
        finally:
            await scene.stop()


def play(story: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(story)


def test_an_answer_in_both_versions() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 3)
            await scene.allocate("c", "s-1")
            await scene.publish("t", 1, pool="node-2")
            await scene.ask(path=KEP_QUESTIONS, limit=1)

            pool = {
                "driver": DRIVER,
                "poolName": "node-1",
                "nodeName": "node-1",
                "generation": 1,
                "totalDevices": 3,
                "allocatedDevices": 1,
                "availableDevices": 2,
                "unavailableDevices": 0,
            }
            answer = await scene.answer()
            (condition,) = answer["conditions"]
            assert condition["message"] == "Calculated status for 1 pools"
            assert answer["poolCount"] == 2
            assert answer["pools"] == [pool | {"resourceSliceCount": 1, "sliceCount": 1}]
            assert answer["observationTime"] == condition["lastTransitionTime"]
            assert (answer["truncated"], answer["totalMatchingPools"]) == (True, 2)
            kep = await scene.answer(path=KEP_QUESTIONS)
            assert kep["conditions"][0]["message"] == "Processed 1 pools"
            assert kep["pools"] == [pool | {"sliceCount": 1}]
            assert kep["observationTime"] == condition["lastTransitionTime"]
            assert (kep["truncated"], kep["totalMatchingPools"]) == (True, 2)

            for prefix, labels in (
                ("resourcepoolstatus_", ""),
                ("resourcepoolstatusrequest_controller_", f'{{driver_name="{DRIVER}"}}'),
            ):
                assert scene.metric(f"{prefix}requests_processed_total{labels}") == 1
                seconds = f"{prefix}request_processing_duration_seconds_count{labels}"
                assert scene.metric(seconds) == 1

    play(story())


def test_under_the_rules_of_v1_38_only_its_fields_are_shown() -> None:
    async def story() -> None:
        gates = DEFAULTS.switched({KEP_FIELDS_IN_V1ALPHA3: False})
        async with LocalServer(gates=gates) as server:
            scene = Scene(server)
            await scene.start()  # whose controller knows the KEP's fields
            await scene.publish("s", 1)
            await scene.publish("t", 1)
            await scene.ask()
            answer = await scene.answer()
            assert answer.keys() == {"poolCount", "pools", "conditions"}
            assert "sliceCount" not in answer["pools"][0]
            await scene.stop()

    play(story())


def test_a_server_that_does_not_know_the_kep_is_not_sent_its_fields() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=0) as scene:
            await scene.start(hidden="/none")
            transport = scene.transports[0]
            transport.is_kubernetes = True
            await scene.publish("s", 1)
            await scene.publish("t", 1)
            await scene.ask()
            await scene.answer()
            (written,) = transport.written
            assert written["status"].keys() == {"poolCount", "pools", "conditions"}
            assert written["status"]["pools"][0]["validationError"]
            assert "sliceCount" not in written["status"]["pools"][0]

    play(story())


def test_a_status_without_an_observation_time_is_no_answer() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=0) as scene:
            await scene.publish("s", 3)
            await scene.ask(path=KEP_QUESTIONS)
            found = await scene.server.get(f"{KEP_QUESTIONS}/q")
            done = {
                "type": "Complete",
                "status": "True",
                "reason": "Mine",
                "message": "",
                "lastTransitionTime": "2026-02-07T10:30:00Z",
            }
            found["status"] = {"conditions": [done], "totalMatchingPools": 7}
            put = await scene.server.ask("PUT", f"{KEP_QUESTIONS}/q/status", found)
            assert put.code == 200, put
            await scene.start()

            async def is_counted() -> bool:
                status = await scene.status()
                return status is not None and status["poolCount"] == 1

            await scene.until(is_counted)
            answer = await scene.answer()
            assert answer["observationTime"] > "2026-02-07T10:30:00Z"
            assert answer["pools"][0]["totalDevices"] == 3
            found = await scene.server.get(f"{KEP_QUESTIONS}/q")
            found["status"]["totalMatchingPools"] = 8
            put = await scene.server.ask("PUT", f"{KEP_QUESTIONS}/q/status", found)
            assert put.code == 422

    play(story())


def test_what_the_controller_of_v1_38_writes_is_an_answer() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.stop()
            await scene.ask()
            found = await scene.server.get(f"{QUESTIONS}/q")
            done = {
                "type": "Complete",
                "status": "True",
                "reason": "CalculationComplete",
                "message": "Calculated status for 0 pools",
                "lastTransitionTime": "2026-02-07T10:30:00Z",
            }
            found["status"] = {"poolCount": 0, "conditions": [done]}
            put = await scene.server.ask("PUT", f"{QUESTIONS}/q/status", found)
            assert put.json["status"]["observationTime"] == "2026-02-07T10:30:00Z"
            kep = await scene.server.get(f"{KEP_QUESTIONS}/q")
            assert kep["status"]["conditions"][0]["message"] == "Processed 0 pools"
            found = put.json
            found["status"] = {"poolCount": 1, "conditions": [done]}
            put = await scene.server.ask("PUT", f"{QUESTIONS}/q/status", found)
            assert put.code == 422

    play(story())


def test_every_error_of_a_pool_is_an_entry() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            for name in ("s", "t"):
                spec = {
                    "driver": DRIVER,
                    "nodeName": "node-1",
                    "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 2},
                    "devices": [{"name": f"gpu-{number}"} for number in range(20)],
                }
                body = {"metadata": {"name": name}, "spec": spec}
                await scene.server.post(f"{V1}/resourceslices", body)
            await scene.ask()
            answer = await scene.answer()
            errors = [
                f"pool node-1: device gpu-{number} appears in multiple slices"
                for number in range(10)
            ]
            assert answer["validationErrors"] == errors
            assert (await scene.answer(path=KEP_QUESTIONS))["validationErrors"] == errors
            assert answer["pools"][0]["validationError"].endswith(" more")
            assert answer["pools"][0]["availableDevices"] == 0

    play(story())


@pytest.mark.parametrize(
    ("spec", "warning", "message"),
    [
        pytest.param({"driver": DRIVER}, "", "Calculated status for 1 pools", id="known"),
        pytest.param(
            {"driver": "gpu.exmaple.com"},
            "spec.driver: no ResourceSlice is of driver gpu.exmaple.com; did you mean gpu.example.com?",
            "Calculated status for 0 pools; no ResourceSlice is of driver gpu.exmaple.com;"
            " did you mean gpu.example.com?",
            id="typo",
        ),
        pytest.param(
            {"driver": DRIVER, "poolName": "other"},
            "",
            f"Calculated status for 0 pools; driver {DRIVER} has no pool other",
            id="no-such-pool",
        ),
    ],
)
def test_a_driver_or_pool_that_nothing_matches(
    spec: dict[str, str], warning: str, message: str
) -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 1)
            body = {"metadata": {"name": "q"}, "spec": spec}
            created = await scene.server.ask("POST", QUESTIONS, body)
            assert created.code == 201
            expected = [f'299 - "{warning}"'] if warning else []
            assert created.header("warning") == expected
            (condition,) = (await scene.answer())["conditions"]
            assert condition["message"] == message

    play(story())


def test_under_the_rules_of_v1_38_nothing_is_said_about_unknown_drivers() -> None:
    async def story() -> None:
        gates = DEFAULTS.switched({UNKNOWN_DRIVER_WARNING: False})
        async with LocalServer(gates=gates) as server:
            scene = Scene(server)
            await scene.start(gates)
            body = {"metadata": {"name": "q"}, "spec": {"driver": "none.example.com"}}
            created = await server.ask("POST", QUESTIONS, body)
            assert created.header("warning") == []
            (condition,) = (await scene.answer())["conditions"]
            assert condition["message"] == "Calculated status for 0 pools"
            await scene.stop()

    play(story())


def test_the_duration_includes_all_waiting() -> None:
    async def story() -> None:
        clock = StoryClock()
        async with LocalServer(clock=lambda: clock.today().replace(microsecond=0)) as server:
            scene = Scene(server)
            await scene.publish("s", 1)
            await scene.ask("early")
            await asyncio.sleep(40)
            await scene.start()
            await scene.answer("early")
            await scene.ask("late")
            await scene.answer("late")
            name = "resourcepoolstatus_request_processing_duration_seconds"
            assert scene.metric(f'{name}_bucket{{le="30.0"}}') == 1
            assert scene.metric(f'{name}_bucket{{le="60.0"}}') == 2
            other = "resourcepoolstatusrequest_controller_request_processing_duration_seconds"
            assert scene.metric(f'{other}_bucket{{driver_name="{DRIVER}",le="1.024"}}') == 2
            await scene.stop()

    play(story())


def test_made_up_drivers_do_not_become_labels() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            for number in range(3):
                await scene.ask(f"q-{number}", driver=f"made-up-{number}.example.com")
                await scene.answer(f"q-{number}")
            name = "resourcepoolstatusrequest_controller_requests_processed_total"
            assert scene.metric(f'{name}{{driver_name="other"}}') == 3

    play(story())


def test_claims_that_change_are_followed() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 3)
            await scene.allocate("c", "s-0")
            await scene.allocate("d", "s-1")
            await scene.server.ask("DELETE", f"{CLAIMS}/d")
            found = await scene.server.get(f"{CLAIMS}/c")
            del found["status"]["allocation"]
            assert (await scene.server.ask("PUT", f"{CLAIMS}/c/status", found)).code == 200
            await scene.allocate("e", "s-1")
            await scene.ask()

            (pool,) = (await scene.answer())["pools"]
            assert (pool["allocatedDevices"], pool["availableDevices"]) == (1, 2)

    play(story())


def test_what_is_answered_stays_as_it_is() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 2)
            await scene.ask()
            answer = await scene.answer()
            await scene.allocate("c", "s-0")
            await scene.stop()
            await scene.start()
            await asyncio.sleep(10)
            assert await scene.status() == answer
            assert sum(each.status_writes for each in scene.transports) == 1

            await scene.server.ask("DELETE", f"{QUESTIONS}/q")
            await scene.ask()
            assert (await scene.answer())["pools"][0]["allocatedDevices"] == 1

    play(story())


def test_an_incomplete_pool_is_waited_for() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 1, slices=2)
            await scene.ask()
            await asyncio.sleep(3)
            assert await scene.status() is None
            await scene.publish("t", 2, slices=2)
            began = scene.clock.now()
            answer = await scene.answer()
            assert scene.clock.now() - began < 1
            assert answer["pools"][0]["totalDevices"] == 3
            assert scene.metric("resourcepoolstatus_request_processing_errors_total") == 0

    play(story())


def test_an_incomplete_pool_is_counted_after_each_change() -> None:
    """A count of the incomplete pool is no answer, although it was made after the request arrived."""

    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 1, slices=3)
            await scene.ask()
            for name, devices in (("t", 2), ("u", 4)):
                await asyncio.sleep(1)
                assert await scene.status() is None
                await scene.publish(name, devices, slices=3)
            began = scene.clock.now()
            answer = await scene.answer()
            assert scene.clock.now() - began < 1
            assert answer["pools"][0]["totalDevices"] == 7

    play(story())


def test_an_incomplete_pool_is_reported_after_a_while() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 1, slices=2)
            began = scene.clock.now()
            await scene.ask()
            answer = await scene.answer()
            assert 4.9 < scene.clock.now() - began < 6
            assert answer["conditions"][0]["message"] == (
                "Calculated status for 1 pools (1 incomplete)"
            )
            (pool,) = answer["pools"]
            assert "totalDevices" not in pool
            error = (
                f"PoolIncomplete: pool {DRIVER}/node-1 is incomplete:"
                " observed 1/2 slices at generation 1"
            )
            assert pool["validationError"] == error
            kep = await scene.answer(path=KEP_QUESTIONS)
            assert kep["validationErrors"] == [f"pool node-1: {error}"]

    play(story())


def test_under_the_rules_of_v1_38_an_incomplete_pool_is_never_reported() -> None:
    async def story() -> None:
        gates = DEFAULTS.switched({REPORT_INCOMPLETE_POOLS: False})
        async with a_pool_status_scene(gates=gates) as scene:
            await scene.publish("s", 1, slices=2)
            await scene.ask()
            await asyncio.sleep(60)
            assert await scene.status() is None
            await scene.publish("t", 2, slices=2)
            assert (await scene.answer())["pools"][0]["totalDevices"] == 3

    play(story())


def test_of_two_controllers_one_answers() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=2) as scene:
            both = asyncio.Barrier(2)

            def meeting(transport: Any) -> Callable[[int], Awaitable[None]]:
                """Both have computed an answer to the first question when one of them writes it."""
                met: list[str] = []

                async def meet(_: int) -> None:
                    name = transport.written[-1]["metadata"]["name"]
                    if name == "q-0" and name not in met:
                        met.append(name)
                        await both.wait()

                return meet

            for transport in scene.transports:
                transport.before_write = meeting(transport)
            await scene.publish("s", 2)
            names = [f"q-{number}" for number in range(30)]
            for name in names:
                await scene.ask(name)
            for name in names:
                await scene.answer(name)
            await asyncio.sleep(5)
            assert scene.metric("resourcepoolstatus_requests_processed_total") == len(names)
            assert scene.metric("resourcepoolstatus_request_processing_errors_total") == 0
            assert sum(each.status_writes for each in scene.transports) > len(names)

    play(story())


def test_a_change_of_labels_meanwhile_does_not_lose_a_question() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:

            async def label(number: int) -> Response | None:
                if number == 1:
                    patch = {"metadata": {"labels": {"a": "b"}}}
                    kind = "application/merge-patch+json"
                    await scene.server.ask("PATCH", f"{QUESTIONS}/q", patch, content_type=kind)
                return None

            scene.transports[0].before_write = label
            await scene.ask()
            await scene.answer()
            assert scene.transports[0].status_writes == 2

    play(story())


def test_a_server_in_trouble_is_asked_again() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:

            async def fail(number: int) -> Response | None:
                return refusal(500, "InternalError") if number <= 3 else None

            scene.transports[0].before_write = fail
            await scene.ask()
            await scene.answer()
            assert scene.transports[0].status_writes == 4
            assert scene.metric("resourcepoolstatus_request_processing_errors_total") == 3
            assert scene.metric("resourcepoolstatus_requests_processed_total") == 1

    play(story())


def test_an_answer_that_is_not_accepted_becomes_a_failure() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:

            async def refuse(number: int) -> Response | None:
                return refusal(413, "RequestEntityTooLarge") if number == 1 else None

            scene.transports[0].before_write = refuse
            await scene.ask()
            (condition,) = (await scene.answer())["conditions"]
            assert (condition["type"], condition["reason"]) == ("Failed", "CalculationFailed")
            assert condition["message"] == "The answer was not accepted: no: RequestEntityTooLarge"

    play(story())


def test_a_server_without_slices() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=0) as scene:
            await scene.start(hidden="/resourceslices")
            await scene.ask()
            answer = await scene.answer()
            (condition,) = answer["conditions"]
            assert (condition["type"], condition["reason"]) == ("Failed", "CalculationFailed")
            assert condition["message"].startswith("Failed to list ResourceSlices: ")
            assert answer["poolCount"] == 0

    play(story())


def test_a_pool_of_generation_zero() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 2, generation=0)
            await scene.ask()
            (pool,) = (await scene.answer())["pools"]
            assert (pool["generation"], pool["totalDevices"]) == (0, 2)

    play(story())


def test_old_answers_are_deleted() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.ask("default")
            await scene.ask("short", KEP_QUESTIONS, ttlSecondsAfterComplete=60)
            await scene.ask("long", KEP_QUESTIONS, ttlSecondsAfterComplete=3 * 3600)
            for name in ("default", "short", "long"):
                await scene.answer(name)
            await asyncio.sleep(50)
            assert not await scene.is_gone("short")
            await asyncio.sleep(15)
            assert await scene.is_gone("short")
            await asyncio.sleep(HOUR - 100)
            assert not await scene.is_gone("default")
            await scene.stop()
            await scene.start()  # the next controller knows how old it is
            await asyncio.sleep(60)
            assert await scene.is_gone("default")
            await asyncio.sleep(1.5 * HOUR)
            assert not await scene.is_gone("long")
            await asyncio.sleep(0.5 * HOUR)
            assert await scene.is_gone("long")

    play(story())


def test_a_question_that_cannot_be_answered_is_deleted_after_a_day() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:

            async def fail(_: int) -> Response | None:
                return refusal(500, "InternalError")

            scene.transports[0].before_write = fail
            await scene.ask()
            await asyncio.sleep(23 * HOUR)
            assert not await scene.is_gone()
            await asyncio.sleep(1.5 * HOUR)
            assert await scene.is_gone()

    play(story())


def test_a_question_that_waited_for_a_controller_is_answered_however_old() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=0) as scene:
            await scene.ask()
            await asyncio.sleep(48 * HOUR)
            await scene.start()
            await scene.answer()

    play(story())


def test_the_gate_of_the_controllers_is_off() -> None:
    async def story() -> None:
        gates = with_overrides({RESOURCE_POOL_STATUS: False})
        async with a_pool_status_scene(gates=gates) as scene:
            await scene.ask()
            await asyncio.sleep(60)
            assert await scene.status() is None
            await scene.stop()
            await scene.start()
            assert await scene.answer()

    play(story())


def test_the_gate_of_the_server_goes_off_and_on_again() -> None:
    """KEP-5677: requests become inaccessible, and are there again; what was not processed is processed then."""
    off = with_overrides({RESOURCE_POOL_STATUS: False})

    async def story() -> None:
        store = UnclosedStore()
        async with LocalServer(store) as server:
            scene = Scene(server)
            await scene.start()
            await scene.publish("s", 2)
            await scene.ask("answered")
            before = await scene.answer("answered")
            await scene.stop()
            await scene.ask("pending")
        async with LocalServer(store, gates=off) as server:
            scene = Scene(server)
            await scene.start()  # of another mind than the server
            for path in (QUESTIONS, KEP_QUESTIONS, f"{QUESTIONS}/answered"):
                answer = await server.ask("GET", path)
                assert answer.code == 404
            created = await server.ask("POST", QUESTIONS, {"metadata": {"name": "q"}})
            assert created.code == 404
            assert (await server.ask("GET", "/apis/resource.k8s.io/v1alpha1")).code == 404
            group = await server.get("/apis/resource.k8s.io")
            assert "v1alpha1" not in [each["version"] for each in group["versions"]]
            listed = await server.get("/apis/resource.k8s.io/v1alpha3")
            assert [each["name"] for each in listed["resources"]] == [
                "devicetaintrules",
                "devicetaintrules/status",
            ]
            assert "apis/resource.k8s.io/v1alpha1" not in (await server.get("/openapi/v3"))["paths"]
            document = await server.get("/openapi/v3/apis/resource.k8s.io/v1alpha3")
            assert "PoolStatus" not in str(document)
            assert "/apis/resource.k8s.io/v1alpha1" not in (await server.get("/"))["paths"]
            await asyncio.sleep(60)
            await scene.stop()
        store.is_kept = False
        async with LocalServer(store) as server:
            scene = Scene(server)
            assert await scene.status("answered") == before
            assert await scene.status("pending") is None
            await scene.start()
            assert (await scene.answer("pending"))["poolCount"] == 1
            assert await scene.status("answered") == before
            await scene.stop()

    play(story())


def test_a_controller_notices_that_requests_are_served_again() -> None:
    async def story() -> None:
        async with a_pool_status_scene(controllers=0) as scene:
            await scene.start(hidden="/resourcepoolstatusrequests")
            await scene.ask()
            await asyncio.sleep(60)
            assert await scene.status() is None
            scene.transports[0].hidden = "/none"
            assert await scene.answer()

    play(story())


def test_v1_38_serves_requests_whatever_the_gate_says() -> None:
    async def story() -> None:
        gates = with_overrides({RESOURCE_POOL_STATUS: False}, RuleSet.V1_38)
        async with LocalServer(gates=gates) as server:
            assert (await server.ask("GET", QUESTIONS)).code == 200

    play(story())


@pytest.mark.parametrize(
    ("rule_set", "short_names"), [(RuleSet.SEEDS, ["rpsr"]), (RuleSet.V1_38, None)]
)
def test_the_short_name(rule_set: RuleSet, short_names: list[str] | None) -> None:
    """kubectl api-resources shows the preferred version, v1alpha3."""

    async def story() -> None:
        async with LocalServer(gates=with_overrides({}, rule_set)) as server:
            listed = await server.get("/apis/resource.k8s.io/v1alpha3")
            (entry,) = (
                each for each in listed["resources"] if each["name"] == "resourcepoolstatusrequests"
            )
            assert entry.get("shortNames") == short_names

    play(story())


# --- many questions, large answers ---


async def publish_large(scene: Scene, pools: int) -> None:
    """Pools whose figures are large: each has 32 capacities with long names."""
    capacity = {f"{'c' * 30}{number:02}": {"value": f"{number + 1}Gi"} for number in range(32)}
    for number in range(pools):
        device = {"name": "d", "allowMultipleAllocations": True, "capacity": capacity}
        spec = {
            "driver": DRIVER,
            "nodeName": "node-1",
            "pool": {"name": f"pool-{number:03}", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        }
        body = {"metadata": {"name": f"s-{number}"}, "spec": spec}
        await scene.server.post(f"{V1}/resourceslices", body)


def test_an_answer_that_is_too_large_is_cut_and_says_so() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await publish_large(scene, 400)
            await scene.ask(limit=390)
            answer = await scene.answer()
            shown = len(answer["pools"])
            assert 200 < shown < 390
            assert [pool["poolName"] for pool in answer["pools"]] == [
                f"pool-{number:03}" for number in range(shown)
            ]
            assert all(len(pool["shareableSummary"]["capacity"]) == 32 for pool in answer["pools"])
            assert answer["poolCount"] == 400
            assert answer["conditions"][0]["message"] == (
                f"Calculated status for {shown} pools; {390 - shown} more do not fit into the answer,"
                " ask for them by poolName"
            )
            whole = await scene.server.ask("GET", f"{QUESTIONS}/q")
            assert len(whole.content) < 1.1 * 1024 * 1024
            kep = await scene.answer(path=KEP_QUESTIONS)
            assert (kep["truncated"], kep["totalMatchingPools"]) == (True, 400)

    play(story())


def test_an_answer_that_etcd_does_not_take_gets_smaller() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await publish_large(scene, 100)
            refused = refusal(500, "InternalError")
            message = b"etcdserver: request is too large"

            async def refuse(number: int) -> Response | None:
                too_large = Response(500, (), refused.body.replace(b"no: InternalError", message))
                return too_large if number <= 2 else None

            scene.transports[0].before_write = refuse
            await scene.ask()
            answer = await scene.answer()
            assert scene.transports[0].status_writes == 3
            assert answer["conditions"][0]["type"] == "Complete"
            assert 15 < len(answer["pools"]) < 50
            assert answer["poolCount"] == 100
            assert scene.metric("resourcepoolstatus_requests_processed_total") == 1

    play(story())


def test_large_answers_are_written_at_a_limited_rate_and_small_ones_at_once() -> None:
    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await publish_large(scene, 310)
            began = scene.clock.now()
            names = [f"q-{number}" for number in range(20)]
            for name in names:
                await scene.ask(name, limit=300)
            await scene.ask("small", poolName="pool-001")
            await scene.answer("small")
            assert scene.clock.now() - began < 1
            for name in names:
                await scene.answer(name)
            seconds = scene.clock.now() - began
            whole = await scene.server.ask("GET", f"{QUESTIONS}/q-0")
            megabytes = len(names) * len(whole.content) / (1024 * 1024)
            assert seconds >= (megabytes - 9) / 4

    play(story())


def test_equal_questions_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def answering(*arguments: Any) -> Any:
        counted.append(arguments[0].driver)
        return answering_request(*arguments)

    monkeypatch.setattr(controller, "answering_request", answering)

    async def story() -> None:
        async with a_pool_status_scene() as scene:
            await scene.publish("s", 3)
            for number in range(30):
                await scene.ask(f"q-{number}")
            answers = [await scene.answer(f"q-{number}") for number in range(30)]
            assert counted == [DRIVER]
            assert all(answer["pools"] == answers[0]["pools"] for answer in answers)

            await asyncio.sleep(2 * HOUR)  # nothing changes: the answer is as good as new
            await scene.ask("later")
            await scene.answer("later")
            assert counted == [DRIVER]
            await asyncio.sleep(60)
            assert not await scene.is_gone("later")

            await scene.allocate("c", "s-1")
            await scene.ask("latest")
            assert (await scene.answer("latest"))["pools"][0]["allocatedDevices"] == 1
            assert counted == [DRIVER] * 2

    play(story())


def test_a_flood_is_cleared_away_in_time() -> None:
    async def story() -> None:
        async with LocalServer(pool_status_limit=CreationLimit(0, 1)) as server:
            scene = Scene(server)
            await scene.start()
            await scene.publish("s", 3)
            for number in range(500):
                await scene.ask(f"q-{number}", KEP_QUESTIONS, ttlSecondsAfterComplete=60)
            await scene.answer("q-499")
            await asyncio.sleep(120)
            assert (await server.get(QUESTIONS))["items"] == []
            await scene.stop()

    play(story())
