"""Binding controllers against the API server; the scheduler's part is played by hand."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import random
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.api.base import replace
from allot.api.claims import AllocationResult, ResourceClaim, ResourceClaimStatus
from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId, ObjectKey
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.in_process import InProcessTransport
from allot.client.leader_election import ElectionTimes, LeaderElector
from allot.client.resources import DEVICE_TAINT_RULES, RESOURCE_CLAIMS
from allot.client.transport import JSON, Query, Response
from allot.controllers.binding import (
    Attacher,
    AttachFailedError,
    Attachment,
    AttachOutcome,
    AttachRequest,
    AttemptLimits,
    BindingController,
    BindingObserver,
    BindingSettings,
    Quarantine,
    SliceRemoval,
    TaintRules,
)
from allot.testing.processes import PROGRAM, ApiServerProcess
from allot.testing.servers import TOKEN, LocalServer
from tests.unit.client.fakes import FakeClock

ROOT = Path(__file__).parents[2]
DRIVER = "fabric.example.com"
OTHER = "other.example.com"
LIMITS = AttemptLimits(backoff=Backoff(0.01, 0.02))
SETTINGS = BindingSettings(LIMITS, progress_seconds=0.01)
Scenario = Callable[["Cluster"], Awaitable[None]]


class Refusing(InProcessTransport):
    """Answers the first writes with an error of the given kind."""

    conflicts = 0
    refuses_rules = False
    before_write: Callable[[], Awaitable[None]] | None = None
    """Done once, while the first write is on its way."""

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if method == "POST" and "devicetaintrules" in path and self.refuses_rules:
            return Response(403, (), b'{"kind":"Status","code":403,"reason":"Forbidden"}')
        if method == "PUT" and self.before_write is not None:
            first, self.before_write = self.before_write, None
            await first()
        if method == "PUT" and path.endswith("/status") and self.conflicts:
            self.conflicts -= 1
            return Response(409, (), b'{"kind":"Status","code":409,"reason":"Conflict"}')
        return await super().request(method, path, query, body, content_type, headers)


class Cluster:
    """An API server, and what a scheduler would do there."""

    def __init__(self, client: Client, transport: Refusing | None = None) -> None:
        self.client = client
        self._transport = transport

    @property
    def transport(self) -> Refusing:
        assert self._transport is not None
        return self._transport

    @contextlib.asynccontextmanager
    async def running(
        self,
        attacher: Attacher,
        settings: BindingSettings = SETTINGS,
        driver: str = DRIVER,
        **rest: Any,
    ) -> AsyncIterator[BindingController]:
        controller = BindingController(Client(self.transport), driver, attacher, settings, **rest)
        task = asyncio.create_task(controller.run())
        try:
            yield controller
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def create(self, name: str = "c") -> None:
        requests = [{"name": "r", "exactly": {"deviceClassName": "x"}}]
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
        }
        claim = RESOURCE_CLAIMS.codec.decode(msgspec.json.encode(body))
        await self.client.create(RESOURCE_CLAIMS, claim)

    async def claim(self, name: str = "c") -> ResourceClaim:
        return await self.client.get(RESOURCE_CLAIMS, ObjectKey("default", name))

    async def allocate(
        self,
        *devices: str,
        name: str = "c",
        node: str = "n0",
        at: datetime | None = None,
        shares: tuple[str, ...] = (),
        parameters: Mapping[str, Any] | None = None,
        failures: tuple[str, ...] = ("Failed",),
    ) -> None:
        """Devices are written `gpu-0`, or `driver/gpu-0`."""
        results = []
        for device in devices:
            driver, _, short = device.rpartition("/")
            result: dict[str, Any] = {
                "request": "r",
                "driver": driver or DRIVER,
                "pool": "rack",
                "device": short,
                "bindingConditions": ["Ready"],
                "bindingFailureConditions": list(failures),
            }
            results += [{**result, "shareID": share} for share in shares] or [result]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation: dict[str, Any] = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            "allocationTimestamp": (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if parameters is not None:
            opaque = {"driver": DRIVER, "parameters": parameters}
            allocation["devices"]["config"] = [{"source": "FromClaim", "opaque": opaque}]
        decoded = msgspec.json.decode(msgspec.json.encode(allocation), type=AllocationResult)
        await self._set_status(name, decoded)

    async def free(self, name: str = "c") -> None:
        await self._set_status(name, None)

    async def delete(self, name: str = "c") -> None:
        await self.free(name)
        await self.client.delete(RESOURCE_CLAIMS, ObjectKey("default", name))

    async def _set_status(self, name: str, allocation: AllocationResult | None) -> None:
        def change(claim: ResourceClaim) -> ResourceClaim:
            status = ResourceClaimStatus(allocation)
            return claim if claim.status == status else replace(claim, status=status)

        key = ObjectKey("default", name)
        await self.client.update_with_retry(RESOURCE_CLAIMS, key, change, subresource="status")

    async def conditions(self, name: str = "c") -> dict[str, dict[str, str]]:
        """By device: `{"gpu-0": {"Ready": "True Attached"}}`."""
        return {
            status.device: {
                condition.type: f"{condition.status} {condition.reason}"
                for condition in status.conditions
            }
            for status in (await self.claim(name)).status.devices
        }

    async def expect(self, wanted: Mapping[str, Mapping[str, str]], name: str = "c") -> None:
        async def is_so() -> bool:
            return await self.conditions(name) == wanted

        await until(is_so, lambda: self.conditions(name))

    async def rules(self) -> list[DeviceTaintRule]:
        return list((await self.client.list(DEVICE_TAINT_RULES)).items)


READY = {"Ready": "True Attached"}


async def until(
    is_so: Callable[[], Awaitable[bool]] | Callable[[], bool],
    show: Callable[[], Awaitable[object]] | None = None,
) -> None:
    for _ in range(20_000):
        answer = is_so()
        if answer if isinstance(answer, bool) else await answer:
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"it did not come to that: {await show() if show else ''}")


def play(scenario: Scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(150), LocalServer() as server:
            app = server.server.app
            client = Client(InProcessTransport(app, TOKEN))
            await scenario(Cluster(client, Refusing(app, TOKEN)))

    asyncio.run(main())


class Hardware(Attacher):
    """Holds what is attached, and insists on what it is promised. Each device can be kept waiting."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.requests: list[AttachRequest] = []
        self.held: dict[str, Attachment] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.failures: dict[str, list[AttachFailedError]] = {}
        self.working: set[str] = set()
        self.pause: Callable[[], float] | None = None
        self.broken_promises: list[str] = []

    def block(self, device: str) -> asyncio.Event:
        return self.gates.setdefault(device, asyncio.Event())

    @contextlib.contextmanager
    def _alone(self, device: str) -> Any:
        if device in self.working:
            self.broken_promises.append(f"two calls at once for {device}")
        self.working.add(device)
        try:
            yield
        finally:
            self.working.discard(device)

    async def attach(self, device: AttachRequest) -> None:
        self.calls.append(f"attach {device.device} {device.node}")
        self.requests.append(device)
        name = device.device + device.share_id
        holder = self.held.get(name)
        if holder is not None and holder.node != device.node:
            self.broken_promises.append(f"{device} is still held as {holder}")
        with self._alone(name):
            self.held[name] = device.attachment
            try:
                await self._take_time(device.device)
            except asyncio.CancelledError:
                self.calls.append(f"cancelled {device.device}")
                raise
            if self.failures.get(device.device):
                raise self.failures[device.device].pop(0)

    async def detach(self, device: Attachment) -> None:
        self.calls.append(f"detach {device.device.device} {device.node}")
        name = device.device.device + device.device.share_id
        with self._alone(name):
            await self._take_time(f"detach {device.device.device}")
            self.held.pop(name, None)

    async def _take_time(self, what: str) -> None:
        if what in self.gates:
            await self.gates[what].wait()
        if self.pause is not None:
            await asyncio.sleep(self.pause())

    async def attached(self) -> Iterable[Attachment]:
        """The fabric knows devices and nodes, not claims."""
        return [
            attachment._replace(claim_uid="", allocated_at=None)
            for attachment in self.held.values()
        ]


def test_conditions_turn_true_when_the_device_is_ready() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        gate = hardware.block("gpu-0")
        await cluster.create()
        async with cluster.running(hardware):
            await cluster.allocate("gpu-0", "gpu-1", node="n7", parameters={"speed": 9})
            working = {"Ready": "False Attaching"}
            await cluster.expect({"gpu-0": working, "gpu-1": READY})
            hardware.requests[0].report("Linking", "2 of 4 lanes")
            await cluster.expect({"gpu-0": {"Ready": "False Linking"}, "gpu-1": READY})
            gate.set()
            await cluster.expect({"gpu-0": READY, "gpu-1": READY})

        claim = await cluster.claim()
        condition = claim.status.devices[0].conditions[0]
        assert condition.message == "ready on n7"
        assert condition.last_transition_time is not None
        assert condition.observed_generation == claim.metadata.generation
        first = hardware.requests[0]
        assert (first.node, first.request, first.parameters) == ("n7", "r", ({"speed": 9},))
        assert hardware.calls == ["attach gpu-0 n7", "attach gpu-1 n7"]

    play(scenario)


def test_what_may_pass_is_tried_again() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.failures["gpu-0"] = [AttachFailedError("Busy", "full"), AttachFailedError("Busy")]
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
        assert hardware.calls == ["attach gpu-0 n0"] * 3
        assert await cluster.rules() == []

    play(scenario)


BROKEN = AttachFailedError("LinkDown", "no light", permanent=True)


def test_a_permanent_failure_taints_the_device_first_and_then_says_so() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.failures["gpu-0"] = [BROKEN]
        await cluster.create()
        rules = TaintRules(cluster.client, DRIVER)
        tainted: list[str] = []

        class Watching(BindingObserver):
            def quarantined(self, device: DeviceId, error: str) -> None:
                tainted.append(f"{device}{error}")

            def claim_written(self, claim: ObjectKey, reports: int) -> None:
                assert tainted, "the scheduler must have a chance to know"

        async with cluster.running(hardware, quarantine=rules, observer=Watching()) as controller:
            await cluster.allocate("gpu-0")
            await cluster.expect({"gpu-0": {"Ready": "False LinkDown", "Failed": "True LinkDown"}})
            (rule,) = await cluster.rules()
            selector = rule.spec.device_selector
            assert selector is not None
            assert (selector.driver, selector.pool, selector.device) == (DRIVER, "rack", "gpu-0")
            assert rule.spec.taint.effect == "NoSchedule"
            assert rule.spec.taint.key == f"{DRIVER}/binding-failed"
            assert rule.metadata.annotations[f"{DRIVER}/reason"] == "LinkDown: no light"
            await cluster.free()
            await until(lambda: hardware.calls[-1] == "detach gpu-0 n0")
            await controller.recovered(DeviceId(DRIVER, "rack", "gpu-0"))
            await controller.recovered(DeviceId(DRIVER, "rack", "gpu-0"))
            assert await cluster.rules() == []

    play(scenario)


def test_taints_go_in_time_also_those_of_an_earlier_life() -> None:
    async def scenario(cluster: Cluster) -> None:
        clock = FakeClock()
        client = Client(cluster.transport, clock=clock)
        device = DeviceId(DRIVER, "rack", "gpu-0")
        await TaintRules(client, OTHER, seconds=1).isolate(device, "not ours")
        before = TaintRules(client, DRIVER, seconds=50)
        await before.isolate(device._replace(device="gpu-1"), "an earlier life")
        await TaintRules(client, DRIVER, seconds=None).isolate(
            device._replace(device="gpu-2"), "until it is released"
        )
        rules = TaintRules(client, DRIVER, seconds=300)
        task = asyncio.create_task(rules.run())
        await rules.isolate(device._replace(device="gpu-3"), "first")

        async def names() -> list[str]:
            return sorted(
                str(rule.spec.device_selector.device)
                for rule in await cluster.rules()
                if rule.spec.device_selector
            )

        async def only(*wanted: str) -> None:
            async def is_so() -> bool:
                return await names() == list(wanted)

            await until(is_so, names)

        await asyncio.sleep(0.05)
        assert await names() == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        await clock.advance(100)
        await only("gpu-0", "gpu-2", "gpu-3")
        await rules.isolate(device._replace(device="gpu-3"), "again: now that counts")
        await clock.advance(250)
        await asyncio.sleep(0.05)
        assert await names() == ["gpu-0", "gpu-2", "gpu-3"]
        await clock.advance(60)
        await only("gpu-0", "gpu-2")
        task.cancel()
        await asyncio.wait((task,))

    play(scenario)


@pytest.mark.parametrize("chosen", ["", "by-error", "by-settings"])
def test_which_failure_condition(chosen: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        condition = "Unreachable" if chosen == "by-error" else ""
        hardware.failures["gpu-0"] = [
            AttachFailedError("Gone", permanent=True, condition=condition)
        ]
        settings = SETTINGS._replace(failure_condition="Lost" if chosen == "by-settings" else "")
        await cluster.create()
        await cluster.allocate("gpu-0", failures=("Failed", "Lost", "Unreachable"))
        async with cluster.running(hardware, settings):
            wanted = {"": "Failed", "by-error": "Unreachable", "by-settings": "Lost"}[chosen]
            await cluster.expect({"gpu-0": {"Ready": "False Gone", wanted: "True Gone"}})

    play(scenario)


def test_a_claim_does_not_wait_for_a_taint_that_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.failures["gpu-0"] = [BROKEN]
        cluster.transport.refuses_rules = True
        rules = TaintRules(Client(cluster.transport), DRIVER)
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware, quarantine=rules):
            await cluster.expect({"gpu-0": {"Ready": "False LinkDown", "Failed": "True LinkDown"}})

    play(scenario)
    assert "could not be quarantined" in caplog.text


def test_a_broken_device_can_be_removed_instead() -> None:
    class Slices:
        def __init__(self) -> None:
            self.calls: list[str] = []

        async def remove(self, device: DeviceId) -> None:
            self.calls.append(f"remove {device}")

        async def restore(self, device: DeviceId) -> None:
            self.calls.append(f"restore {device}")

    async def scenario(cluster: Cluster) -> None:
        hardware, slices = Hardware(), Slices()
        hardware.failures["gpu-0"] = [BROKEN]
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware, quarantine=SliceRemoval(slices)) as controller:
            await cluster.expect({"gpu-0": {"Ready": "False LinkDown", "Failed": "True LinkDown"}})
            await controller.recovered(DeviceId(DRIVER, "rack", "gpu-0"))
        assert slices.calls == [f"remove {DRIVER}/rack/gpu-0", f"restore {DRIVER}/rack/gpu-0"]

    play(scenario)


@pytest.mark.parametrize("how", ["deallocated", "deleted", "elsewhere"])
def test_what_is_no_longer_wanted_is_cancelled_and_detached(how: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.block("gpu-0")
        ends: list[AttachOutcome] = []

        class Watching(BindingObserver):
            def attach_ended(
                self, request: AttachRequest, outcome: AttachOutcome, seconds: float
            ) -> None:
                ends.append(outcome)

        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware, observer=Watching()) as controller:
            await until(lambda: "attach gpu-0 n0" in hardware.calls)
            await (cluster.delete() if how == "deleted" else cluster.free())
            if how == "elsewhere":
                await cluster.allocate("gpu-1", node="n1")
                await cluster.expect({"gpu-1": READY})
            await until(lambda: "gpu-0" not in hardware.held)
            assert [call for call in hardware.calls if "gpu-0" in call] == [
                "attach gpu-0 n0",
                "cancelled gpu-0",
                "detach gpu-0 n0",
            ]
            assert ends[0] is AttachOutcome.CANCELLED
            assert len(controller.known) == (how == "elsewhere")

    play(scenario)


def test_letting_go_is_tried_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Hardware):
        async def detach(self, device: Attachment) -> None:
            if len(self.calls) < 4:
                self.calls.append("stuck")
                raise OSError("stuck")
            await super().detach(device)

    async def scenario(cluster: Cluster) -> None:
        hardware = Stubborn()
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
            await cluster.free()
            await until(lambda: not hardware.held)
        assert hardware.calls == ["attach gpu-0 n0", *["stuck"] * 3, "detach gpu-0 n0"]

    play(scenario)


def test_the_next_claim_waits_until_the_device_is_free() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        gate = hardware.block("detach gpu-0")
        await cluster.create("a")
        await cluster.create("b")
        await cluster.allocate("gpu-0", name="a")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY}, "a")
            await cluster.free("a")
            await cluster.allocate("gpu-0", name="b", node="n1")
            await until(lambda: hardware.calls[-1] == "detach gpu-0 n0")
            await asyncio.sleep(0.05)
            assert hardware.calls == ["attach gpu-0 n0", "detach gpu-0 n0"]
            gate.set()
            await cluster.expect({"gpu-0": READY}, "b")
        assert hardware.calls[2:] == ["attach gpu-0 n1"]
        assert hardware.broken_promises == []

    play(scenario)


def test_freed_and_given_back_within_a_second_is_another_allocation() -> None:
    """The same node, device and timestamp, and the controller may see only the end."""

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.failures["gpu-0"] = [BROKEN]
        now = datetime.now(UTC)
        await cluster.create()
        await cluster.allocate("gpu-0", at=now)
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": {"Ready": "False LinkDown", "Failed": "True LinkDown"}})
            await cluster.free()
            await cluster.allocate("gpu-0", at=now)
            await cluster.expect({"gpu-0": READY})
        assert hardware.calls == ["attach gpu-0 n0", "detach gpu-0 n0", "attach gpu-0 n0"]

    play(scenario)


def test_a_report_does_not_reach_the_next_allocation() -> None:
    """Even if that looks the same, and comes while the report is on its way."""

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        now = datetime.now(UTC)

        async def again() -> None:
            await cluster.free()
            await cluster.allocate("gpu-0", at=now)
            await asyncio.sleep(0.05)  # the controller hears of both, but is at work on the claim

        cluster.transport.before_write = again
        await cluster.create()
        await cluster.allocate("gpu-0", at=now)
        async with cluster.running(hardware):
            await until(lambda: len(hardware.calls) == 3)
            await cluster.expect({"gpu-0": READY})
        assert hardware.calls == ["attach gpu-0 n0", "detach gpu-0 n0", "attach gpu-0 n0"]

    play(scenario)


def test_a_restart_goes_on_from_what_claims_and_devices_say() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.block("slow")
        for name in ("done", "begun", "freed"):
            await cluster.create(name)
        await cluster.allocate("ready", name="done")
        await cluster.allocate("slow", name="begun")
        await cluster.allocate("spare", name="freed")
        async with cluster.running(hardware):
            for name, device in (("done", "ready"), ("freed", "spare")):
                await cluster.expect({device: READY}, name)
            await cluster.expect({"slow": {"Ready": "False Attaching"}}, "begun")
        assert "detach" not in " ".join(hardware.calls)
        await cluster.delete("freed")

        hardware.calls.clear()
        hardware.gates.clear()
        async with cluster.running(hardware) as controller:
            await cluster.expect({"slow": READY}, "begun")
            await until(lambda: "spare" not in hardware.held)
            assert sorted(hardware.calls) == ["attach slow n0", "detach spare n0"]
            await cluster.free("done")
            await until(lambda: "ready" not in hardware.held)
            assert len(controller.known) == 1

    play(scenario)


def test_a_restart_after_the_device_was_given_to_another_node() -> None:
    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
        await cluster.free()
        await cluster.allocate("gpu-0", node="n1")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
        assert hardware.calls == ["attach gpu-0 n0", "detach gpu-0 n0", "attach gpu-0 n1"]
        assert hardware.broken_promises == []

    play(scenario)


def test_what_an_earlier_life_attached_and_the_claim_gave_up_before_it_was_looked_at() -> None:
    class Late(BindingController):
        """Has so much to do that claims wait."""

        go = asyncio.Event()

        async def _reconcile(self, key: ObjectKey) -> None:
            await self.go.wait()
            await super()._reconcile(key)

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
        late = Late(cluster.client, DRIVER, hardware, SETTINGS)
        task = asyncio.create_task(late.run())
        await until(lambda: len(late.known) == 1)
        await cluster.free()
        await cluster.allocate("gpu-0", node="n1")
        late.go.set()
        await cluster.expect({"gpu-0": READY})
        task.cancel()
        await asyncio.wait((task,))
        assert hardware.calls == ["attach gpu-0 n0", "detach gpu-0 n0", "attach gpu-0 n1"]

    play(scenario)


def test_two_drivers_on_one_claim_do_not_disturb_each_other() -> None:
    async def scenario(cluster: Cluster) -> None:
        mine, theirs = Hardware(), Hardware()
        theirs.failures["gpu-0"] = [BROKEN]
        await cluster.create()
        async with cluster.running(mine), cluster.running(theirs, driver=OTHER):
            await cluster.allocate("gpu-0", f"{OTHER}/gpu-0", "gpu-1", f"{OTHER}/gpu-1")

            async def by_driver() -> dict[str, str]:
                return {
                    f"{status.driver}/{status.device}": " ".join(
                        f"{condition.type}={condition.status}" for condition in status.conditions
                    )
                    for status in (await cluster.claim()).status.devices
                }

            async def is_so() -> bool:
                return await by_driver() == {
                    f"{DRIVER}/gpu-0": "Ready=True",
                    f"{DRIVER}/gpu-1": "Ready=True",
                    f"{OTHER}/gpu-0": "Ready=False Failed=True",
                    f"{OTHER}/gpu-1": "Ready=True",
                }

            await until(is_so, by_driver)
        assert len(mine.calls) == len(theirs.calls) == 2

    play(scenario)


def test_shares_of_a_device_are_attached_each() -> None:
    shares = ("0a0b0c0d-0000-4000-8000-000000000000", "0a0b0c0d-0000-4000-8000-000000000001")

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        await cluster.create()
        await cluster.allocate("gpu-0", shares=shares)
        async with cluster.running(hardware):

            async def ready() -> bool:
                return {
                    status.share_id
                    for status in (await cluster.claim()).status.devices
                    if status.conditions[0].status == "True"
                } == set(shares)

            await until(ready)
        assert [request.share_id for request in hardware.requests] == list(shares)

    play(scenario)


def test_a_conflict_with_another_writer_of_the_claim() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.transport.conflicts = 3
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(Hardware()):
            await cluster.expect({"gpu-0": READY})
        assert cluster.transport.conflicts == 0

    play(scenario)


def test_asking_what_is_attached_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    class Unreachable(Hardware):
        tries = 0

        async def attached(self) -> Iterable[Attachment]:
            self.tries += 1
            if self.tries < 3:
                raise OSError("the fabric does not answer")
            assert self.calls == [], "nothing is attached before that is known"
            return await super().attached()

    async def scenario(cluster: Cluster) -> None:
        hardware = Unreachable()
        await cluster.create()
        await cluster.allocate("gpu-0")
        async with cluster.running(hardware):
            await cluster.expect({"gpu-0": READY})
        assert hardware.tries == 3

    play(scenario)


def test_of_several_controllers_one_leads() -> None:
    async def scenario(cluster: Cluster) -> None:
        times = ElectionTimes(lease_seconds=2, renew_seconds=1.0, retry_seconds=0.05)
        hardware = Hardware()
        tasks = []
        for identity in ("one", "two"):
            elector = LeaderElector(cluster.client, ObjectKey("default", "lease"), identity, times)
            controller = BindingController(cluster.client, DRIVER, hardware, SETTINGS)
            tasks.append(asyncio.create_task(elector.run(controller.run)))
            await asyncio.sleep(0.02)
        await cluster.create()
        await cluster.allocate("gpu-0")
        await cluster.expect({"gpu-0": READY})
        assert len(hardware.calls) == 1
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        await cluster.free()
        await cluster.allocate("gpu-1")
        await cluster.expect({"gpu-1": READY})
        assert hardware.calls[1:].count("attach gpu-1 n0") == 1
        tasks[1].cancel()
        await asyncio.wait(tasks)

    play(scenario)


def test_a_quarantine_that_fails_does_not_end_the_controller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(Quarantine):
        runs = 0

        async def run(self) -> None:
            self.runs += 1
            raise OSError("no")

    async def scenario(cluster: Cluster) -> None:
        faulty = Faulty()
        await cluster.create()
        async with cluster.running(Hardware(), quarantine=faulty):
            await until(lambda: faulty.runs > 1)
            await cluster.allocate("gpu-0")
            await cluster.expect({"gpu-0": READY})

    play(scenario)


def test_two_claims_swap_their_devices() -> None:
    """Each waits for the other to let go, and neither keeps the loop busy meanwhile."""

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        gates = [hardware.block("detach gpu-0"), hardware.block("detach gpu-1")]
        for name, device in (("a", "gpu-0"), ("b", "gpu-1")):
            await cluster.create(name)
            await cluster.allocate(device, name=name)
        async with cluster.running(hardware):
            for name, device in (("a", "gpu-0"), ("b", "gpu-1")):
                await cluster.expect({device: READY}, name)
            await cluster.free("a")
            await cluster.free("b")
            await cluster.allocate("gpu-1", name="a", node="n1")
            await cluster.allocate("gpu-0", name="b", node="n1")
            await asyncio.sleep(0.05)
            for gate in gates:
                gate.set()
            await cluster.expect({"gpu-1": READY}, "a")
            await cluster.expect({"gpu-0": READY}, "b")
        assert hardware.broken_promises == []

    play(scenario)


# --- what the documentation shows ---


def test_the_controller_in_the_documentation() -> None:
    text = (ROOT / "docs" / "binding-conditions.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"__name__": "cables"}
    exec(compile(code, "docs/binding-conditions.md", "exec"), names)  # noqa: S102 - our own

    async def scenario(cluster: Cluster) -> None:
        cables = names["Cables"]()
        task = asyncio.create_task(names["control"](cluster.client, cables))
        await cluster.create()
        await cluster.allocate("cables.example.com/long", "cables.example.com/frayed", node="n3")
        await cluster.expect(
            {"long": READY, "frayed": {"Ready": "False Frayed", "Failed": "True Frayed"}}
        )
        assert list(cables.plugged.values()) == ["n3"]
        assert len(await cluster.rules()) == 1
        await cluster.free()
        await until(lambda: not cables.plugged)
        task.cancel()
        await asyncio.wait((task,))

    play(scenario)


def example(name: str) -> Any:
    """A module of the examples."""
    path = ROOT / "examples" / "binding-conditions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # data classes look there
    spec.loader.exec_module(module)
    return module


def test_story_1_an_fpga_is_programmed() -> None:
    fpga = example("fpga")

    async def scenario(cluster: Cluster) -> None:
        attacher = fpga.FpgaAttacher(seconds_per_block=0.005)
        settings = SETTINGS._replace(failure_condition="ProgrammingFailed")
        await cluster.create()
        await cluster.allocate("fpga-0", parameters={"bitstream": "av1-encoder"})
        async with cluster.running(attacher, settings):
            await cluster.expect({"fpga-0": {"Ready": "False Programming"}})
            claim = await cluster.claim()
            assert claim.status.devices[0].conditions[0].message.endswith(" %")
            await cluster.expect({"fpga-0": READY})
        attacher.seconds_per_block = 1000.0
        async with cluster.running(attacher, settings):  # after a restart nothing is programmed
            await cluster.free()
            await until(lambda: not attacher.boards)
            await cluster.allocate("fpga-0", parameters={"bitstream": "nonsense"})
            reason = "NoSuchBitstream"
            await cluster.expect(
                {"fpga-0": {"Ready": f"False {reason}", "Failed": f"True {reason}"}}
            )

    play(scenario)


def test_story_2_gpus_of_a_shared_pool() -> None:
    fabric = example("fabric")

    async def scenario(cluster: Cluster) -> None:
        switch = fabric.Switch(delay_seconds=0.02)
        switch.busy["n0"] = 2
        switch.dark.add("gpu-1")
        switch.hanging.add("gpu-2")
        attacher = fabric.FabricAttacher(switch)
        settings = SETTINGS._replace(limits=LIMITS._replace(attach_seconds=0.2))
        await cluster.create("a")
        await cluster.create("b")
        async with cluster.running(attacher, settings):
            await cluster.allocate("gpu-0", name="a")
            await cluster.expect({"gpu-0": READY}, "a")
            await cluster.allocate("gpu-1", "gpu-2", name="b", node="n1")
            failed = {"Ready": "False LinkDown", "Failed": "True LinkDown"}
            hung = {"Ready": "False AttachTimedOut"}
            await cluster.expect({"gpu-1": failed, "gpu-2": hung}, "b")
            await cluster.free("b")
            await cluster.free("a")
            await cluster.allocate("gpu-0", name="b", node="n1")
            await cluster.expect({"gpu-0": READY}, "b")
            assert list(switch.connected.values()) == ["n1"]
        await cluster.free("b")
        async with cluster.running(attacher, settings):  # freed while no controller ran
            await until(lambda: not switch.connected)

    play(scenario)


def a_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        number: int = listener.getsockname()[1]
        return number


async def page(port: int, name: str) -> str:
    """The content of one of the controller's own pages."""
    async with asyncio.timeout(150):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
        writer.write(
            f"GET /{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
    head, _, content = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200"), head
    return content


def test_the_command_plays_a_script(tmp_path: Path) -> None:
    script = ROOT / "examples" / "binding-conditions" / "fabric.script"
    quick = tmp_path / "quick"
    quick.write_text(script.read_text().replace("2s", "20ms").replace("3s", "30ms"))
    port = a_free_port()
    with ApiServerProcess(tmp_path / "server", "--storage", "memory") as server:

        async def main() -> None:
            process = await asyncio.create_subprocess_exec(
                PROGRAM,
                "binding-controller",
                f"--kubeconfig={server.kubeconfig}",
                f"--driver={DRIVER}",
                f"--script-file={quick}",
                "--script=rack/gpu-3: ready after 10ms",
                f"--port={port}",
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            cluster = Cluster(connect(server.kubeconfig))
            try:
                assert (
                    await process.stdout.readline()
                    == f"allot binding-controller: {DRIVER}\n".encode()
                )
                await cluster.create()
                await cluster.allocate("gpu-1", "gpu-3", "gpu-9")
                hung = {"Ready": "False Simulated"}
                await cluster.expect({"gpu-1": READY, "gpu-3": READY, "gpu-9": hung})
                assert await page(port, "healthz") == "ok"
                shown = await page(port, "metrics")
                assert f'allot_binding_attaching{{driver="{DRIVER}"}} 1.0' in shown
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
                output = (await process.stdout.read()).decode()
                assert "rack/gpu-9 on n0 for default/c: attempt 1: hang" in output
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                await cluster.client.close()

        asyncio.run(main())


# --- laws ---


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_ends_with_the_current_allocations_only(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Claims come, move and go while devices are slow and fail, and controllers are started again."""
    chance = random.Random(seed)  # noqa: S311

    async def scenario(cluster: Cluster) -> None:
        hardware = Hardware()
        hardware.pause = lambda: chance.choice((0, 0, 0.001, 0.01))
        names, devices = ("a", "b"), {"d0", "d1", "d2", "d3"}
        has: dict[str, list[str]] = {}

        async def step() -> None:
            name = chance.choice(names)
            if name not in has:
                await cluster.create(name)
                has[name] = []
            match chance.choice(("free", "delete", "move", "move", "move", "fail", "wait")):
                case "free":
                    await cluster.free(name)
                    has[name] = []
                case "delete":
                    await cluster.delete(name)
                    del has[name]
                case "move":
                    await cluster.free(name)
                    taken = {
                        device for other, got in has.items() if other != name for device in got
                    }
                    chosen = chance.sample(sorted(devices - taken), chance.randint(0, 2))
                    if chosen:
                        await cluster.allocate(*chosen, name=name, node=chance.choice(("n0", "n1")))
                    has[name] = chosen
                case "fail":
                    failure = AttachFailedError("Busy")
                    hardware.failures.setdefault(chance.choice(sorted(devices)), []).append(failure)
                case "wait":
                    await asyncio.sleep(chance.choice((0, 0.005, 0.02)))

        for _ in range(4):
            async with cluster.running(hardware):
                for _ in range(chance.randint(0, 12)):
                    await step()
        async with cluster.running(hardware) as controller:
            await step()

            async def is_so() -> bool:
                held = {
                    (result.device, claim.metadata.uid)
                    for claim in [await cluster.claim(name) for name in has]
                    if claim.status.allocation is not None
                    for result in claim.status.allocation.devices.results
                }
                ready = {
                    (device, claim.metadata.uid)
                    for claim in [await cluster.claim(name) for name in has]
                    for device, conditions in (
                        await cluster.conditions(claim.metadata.name)
                    ).items()
                    if conditions == READY
                }
                attached = {(name, one.claim_uid) for name, one in hardware.held.items()}
                return held == ready == attached and len(controller.known) == len(held)

            async def show() -> object:
                return hardware.held, hardware.calls[-10:], list(controller.known)

            await until(is_so, show)
        assert hardware.broken_promises == []

    play(scenario)
