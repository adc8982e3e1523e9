"""The claim behind extended resources: when its devices are taken, and who may write what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.identities import DeviceId, ObjectKey
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import EXTENDED_RESOURCE_CLAIM
from allot.client.client import Client
from allot.client.errors import ApiStatusError, TransportError
from allot.client.in_process import InProcessTransport
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.client.retries import NEVER
from allot.client.transport import Response
from allot.features import DEFAULTS
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    CANNOT_FIT,
    LEFT_OVER,
    PodExtension,
    Variant,
    claim_to_create,
)
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.extended_resource_classes import ResourceClasses
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import DRIVER, an_allocation
from allot.testing.servers import TOKEN, LocalServer
from tests.unit.scheduler.state.objects import a_node_facts, a_pod_info, on_node

GPU = "example.com/gpu"
FOREIGN = "example.com/fpga"
KEY = ObjectKey("default", "pod")
DEVICE = DeviceId(DRIVER, "node-1", "gpu-0")


class Bench:
    """An API server with one pod, and the claims behind it, without an informer."""

    def __init__(self, client: Client, later: timedelta = timedelta()) -> None:
        self.client = client
        self.tracker = ClaimTracker(DEFAULTS)
        classes = ResourceClasses()
        spec = DeviceClassSpec(extended_resource_name=GPU)
        classes.put(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec))
        self.claims = ExtendedClaims(
            client,
            ClaimWriter(client, self.tracker.get),
            self.tracker,
            classes,
            lambda: datetime.now(UTC) + later,
        )
        self.spawned: list[Coroutine[Any, Any, None]] = []

    async def pod(self) -> PodInfo:
        return PodInfo.of(await self.client.get(PODS, KEY))

    async def reserved(self) -> PodExtension:
        """The pod's extension with a device reserved on a node."""
        extension = self.claims.find_extension(await self.pod())
        assert extension is not None
        variant = extension.variant_on(on_node(a_node_facts()))
        assert isinstance(variant, Variant)
        allocation = an_allocation("gpu-0", request="container-0-request-0")
        self.claims.reserve(extension, variant, allocation)
        return extension

    def is_taken(self) -> bool:
        return self.tracker.ledger.is_dedicated(DEVICE)

    async def name_claim(self, name: str) -> None:
        """Another client writes a claim into the pod's status."""
        mapping = {"containerName": "c0", "resourceName": GPU, "requestName": "r"}
        told = {"resourceClaimName": name, "requestMappings": [mapping]}
        patch = {"status": {"extendedResourceClaimStatus": told}}
        await self.client.patch(PODS, KEY, patch, subresource="status")

    async def named(self) -> str:
        status = (await self.client.get(PODS, KEY)).status.extended_resource_claim_status
        return status.resource_claim_name if status is not None else ""

    async def names(self) -> list[str]:
        return [one.metadata.name for one in (await self.client.list(RESOURCE_CLAIMS)).items]


@asynccontextmanager
async def a_server() -> AsyncIterator[LocalServer]:
    """With one pod."""
    async with LocalServer() as server:
        container = {"name": "c0", "image": "i", "resources": {"limits": {GPU: "1"}}}
        pod = {"metadata": {"name": "pod"}, "spec": {"containers": [container]}}
        await server.post("/api/v1/namespaces/default/pods", pod)
        yield server


@asynccontextmanager
async def a_bench(later: timedelta = timedelta()) -> AsyncIterator[Bench]:
    async with a_server() as server:
        yield Bench(Client(InProcessTransport(server.server.app, TOKEN)), later)


def test_devices_are_taken_from_the_decision_until_the_claim_is_seen_and_after() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            extension = await bench.reserved()
            assert bench.is_taken()

            binding = asyncio.create_task(bench.claims.bind(extension, None))
            while not await bench.named():
                assert bench.is_taken()
                await asyncio.sleep(0)
            assert not binding.done()  # the informer has not delivered the claim yet
            assert extension.created is not None
            key = ObjectKey("default", extension.created.metadata.name)
            bench.tracker.put(await bench.client.get(RESOURCE_CLAIMS, key))
            await binding

            assert bench.is_taken()
            assert not bench.tracker.has_pending_allocation(extension.created.metadata.uid)

    asyncio.run(scenario())


def test_a_decision_that_was_never_written_is_forgotten_at_once() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            bench.claims.unreserve(await bench.reserved(), bench.spawned.append)

            assert not bench.is_taken()
            assert bench.spawned == []

    asyncio.run(scenario())


def test_another_scheduler_named_a_claim_first() -> None:
    """Ours gives up: its claim is deleted, and its device stays taken until then."""

    async def scenario() -> None:
        async with a_bench() as bench:
            extension = await bench.reserved()
            await bench.name_claim("theirs")
            with pytest.raises(ClaimChangedError, match="got claim theirs in the meantime"):
                await bench.claims.bind(extension, None)

            bench.claims.unreserve(extension, bench.spawned.append)
            assert bench.is_taken()
            await bench.spawned.pop()

            assert not bench.is_taken()
            assert await bench.names() == []
            assert await bench.named() == "theirs"

    asyncio.run(scenario())


def test_a_deleted_claim_has_freed_its_device_when_handlers_run() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            extension = await bench.reserved()
            await bench.name_claim("theirs")
            with pytest.raises(ClaimChangedError):
                await bench.claims.bind(extension, None)
            assert extension.created is not None
            bench.tracker.put(extension.created)
            heard: list[bool] = []
            bench.tracker.add_listener(lambda _old, _new: heard.append(bench.is_taken()))
            bench.claims.unreserve(extension, bench.spawned.append)

            bench.tracker.remove(extension.created)

            assert heard == [False]
            await bench.spawned.pop()

    asyncio.run(scenario())


def test_extended_resource_claim_status_is_written_to_a_changed_pod() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            extension = await bench.reserved()
            await bench.client.patch(PODS, KEY, {"metadata": {"labels": {"a": "b"}}})
            binding = asyncio.create_task(bench.claims.bind(extension, None))
            while not await bench.named():
                await asyncio.sleep(0)
            binding.cancel()

    asyncio.run(scenario())


def test_a_pod_that_needs_no_claim_after_all_names_none() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            await bench.name_claim("of-another-node")
            extension = bench.claims.find_extension(await bench.pod())
            assert extension is not None
            assert extension.variant_on(on_node(a_node_facts(allocatable={GPU: "1"}))) is None

            await bench.claims.bind(extension, None)

            assert await bench.named() == ""

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("age_seconds", "is_removed"),
    [pytest.param(5, False, id="just-made"), pytest.param(20, True, id="long-ago")],
)
def test_a_left_over_extended_resource_claim(age_seconds: int, is_removed: bool) -> None:
    async def scenario() -> None:
        async with a_bench() as first:
            extension = await first.reserved()
            binding = asyncio.create_task(first.claims.bind(extension, None))
            while not await first.named():
                await asyncio.sleep(0)
            binding.cancel()

            second = Bench(first.client, timedelta(seconds=age_seconds))
            for claim in (await first.client.list(RESOURCE_CLAIMS)).items:
                second.tracker.put(claim)
            found = second.claims.find_extension(await second.pod())
            assert found is not None
            assert found.variant_on(on_node(a_node_facts())) == LEFT_OVER
            if is_removed:
                await second.claims.remove_left_over(found)
            else:
                with pytest.raises(ClaimChangedError, match="got created elsewhere"):
                    await second.claims.remove_left_over(found)

            assert (await first.names() == []) == is_removed
            assert (await first.named() == "") == is_removed

    asyncio.run(scenario())


def test_a_claim_that_its_pod_is_bound_with_stays() -> None:
    async def scenario() -> None:
        async with a_bench(later=timedelta(minutes=1)) as bench:
            extension = await bench.reserved()
            binding = asyncio.create_task(bench.claims.bind(extension, None))
            while not await bench.named():
                await asyncio.sleep(0)
            binding.cancel()
            await bench.client.bind(KEY, extension.pod.uid, "node-1")
            assert extension.created is not None

            assert not await bench.claims.remove(extension.created, extension.pod)

            assert await bench.names() == [await bench.named()]

    asyncio.run(scenario())


class Lossy(InProcessTransport):
    """Loses answers, or refuses, as long as it is told to."""

    loses = False
    refuses = False

    async def request(self, method: str, path: str, *args: Any, **options: Any) -> Response:
        if self.refuses and method != "GET":
            raise TransportError("refused", was_sent=False)
        answer = await super().request(method, path, *args, **options)
        if self.loses and method == "POST":
            raise TransportError("lost", was_sent=True)
        return answer


@asynccontextmanager
async def a_lossy_bench() -> AsyncIterator[tuple[Bench, Lossy]]:
    async with a_server() as server:
        lossy = Lossy(server.server.app, TOKEN)
        yield Bench(Client(lossy, retry=NEVER)), lossy


def test_a_claim_whose_clean_up_fails_is_known_to_the_next_attempt() -> None:
    """No informer has shown it yet: a second claim would leave the first one behind."""

    async def scenario() -> None:
        async with a_lossy_bench() as (bench, lossy):
            released: list[ResourceClaim] = []
            bench.tracker.add_release_listener(released.append)
            extension = await bench.reserved()
            await bench.name_claim("theirs")
            with pytest.raises(ClaimChangedError):
                await bench.claims.bind(extension, None)
            assert extension.created is not None
            lossy.refuses = True
            with pytest.raises(TransportError):
                await bench.claims.remove(extension.created, extension.pod)
            lossy.refuses = False

            again = bench.claims.find_extension(await bench.pod())
            assert again is not None
            assert again.left_over == (extension.created,)
            assert again.variant_on(on_node(a_node_facts())) == LEFT_OVER
            await bench.claims.remove_left_over(again)

            assert await bench.names() == []
            assert extension.created in released, (
                "the pod must be woken, and no informer will do it"
            )
            last = bench.claims.find_extension(await bench.pod())
            assert last is not None
            assert last.left_over == ()

    asyncio.run(scenario())


def test_a_create_whose_answer_is_lost_never_leads_to_a_second_claim() -> None:
    async def scenario() -> None:
        async with a_lossy_bench() as (bench, lossy):
            lossy.loses = True
            with pytest.raises(TransportError):
                await bench.claims.bind(await bench.reserved(), None)
            lossy.loses = False
            (name,) = await bench.names()
            assert name.startswith("pod-extended-resources-")

            with pytest.raises(ApiStatusError, match="already exists"):
                await bench.claims.bind(await bench.reserved(), None)

            assert await bench.names() == [name]

    asyncio.run(scenario())


async def created_name(bench: Bench, extension: PodExtension) -> str:
    binding = asyncio.create_task(bench.claims.bind(extension, None))
    while not (name := await bench.named()) and not binding.done():
        await asyncio.sleep(0)
    binding.cancel()
    return name


def test_the_name_looks_like_a_generated_one_and_is_that_of_no_other_claim() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            extension = await bench.reserved()
            assert extension.reserved is not None
            first, second = (claim_to_create(extension.reserved, attempt) for attempt in (0, 1))
            theirs = replace(first.metadata, annotations={}, owner_references=())
            await bench.client.create(RESOURCE_CLAIMS, replace(first, metadata=theirs))

            name = await created_name(bench, extension)

            assert name == second.metadata.name != first.metadata.name
            assert re.fullmatch("pod-extended-resources-[a-z0-9]{5}", name)

    asyncio.run(scenario())


def test_the_name_of_a_long_pod_is_shortened() -> None:
    owner = OwnerReference(kind="Pod", name="p" * 63, uid="1", controller=True)
    metadata = ObjectMeta(
        generate_name=f"{'p' * 63}-extended-resources-",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )

    name = claim_to_create(ResourceClaim(metadata=metadata)).metadata.name

    assert re.fullmatch("p{58}[a-z0-9]{5}", name)


def test_a_resource_that_neither_devices_nor_the_node_have() -> None:
    async def scenario() -> None:
        async with a_bench() as bench:
            pod = a_pod_info(requests={GPU: 1, FOREIGN: 1})
            extension = bench.claims.find_extension(pod)
            assert extension is not None

            assert extension.variant_on(on_node(a_node_facts())) == CANNOT_FIT
            node = on_node(a_node_facts(allocatable={FOREIGN: "1"}))
            assert isinstance(extension.variant_on(node), Variant)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param({"cpu": 1}, id="no-extended-resources"),
        pytest.param({FOREIGN: 1}, id="no-class-for-them"),
        pytest.param({GPU: 0}, id="none-of-them"),
    ],
)
def test_pods_that_are_none_of_our_business(requests: dict[str, int]) -> None:
    tracker = ClaimTracker(DEFAULTS)
    classes = ResourceClasses()
    classes.put(
        DeviceClass(
            metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(extended_resource_name=GPU)
        )
    )
    client = Client(InProcessTransport(_nobody, TOKEN))
    claims = ExtendedClaims(
        client, ClaimWriter(client, tracker.get), tracker, classes, lambda: datetime.now(UTC)
    )

    assert claims.find_extension(a_pod_info(requests=requests)) is None


async def _nobody(*_: Any) -> None:
    raise AssertionError("must not be called")
