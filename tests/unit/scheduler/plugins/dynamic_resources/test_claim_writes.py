from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.claims import AllocationResult, ResourceClaim, ResourceClaimStatus
from allot.api.identities import ObjectKey
from allot.api.resource import DELETE_PROTECTION
from allot.client.errors import ClientError, TransportError
from allot.client.resources import RESOURCE_CLAIMS
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ATTEMPTS, ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter, with_finalizer
from allot.testing.builders import an_allocation
from tests.unit.scheduler.plugins.dynamic_resources.claims import a_stored_claim
from tests.unit.scheduler.plugins.dynamic_resources.server import Scene, a_claim_write_scene
from tests.unit.scheduler.state.objects import a_pod_info

GPU_0 = an_allocation("gpu-0", node="node-1")
GPU_1 = an_allocation("gpu-1", node="node-2", pool="node-2")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POD = a_pod_info()
OTHER = a_pod_info("other")
THIRD = a_pod_info("third")


def played(story: Callable[[Scene, ClaimWriter], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with a_claim_write_scene() as scene:
            await story(scene, ClaimWriter(scene.client, lambda _: None))

    asyncio.run(main())


def consumers(claim: ResourceClaim) -> list[tuple[str, str, str, str]]:
    return [(c.api_group, c.resource, c.name, c.uid) for c in claim.status.reserved_for]


async def delete_in_use(scene: Scene) -> None:
    """The claim is being deleted, but something holds it."""
    held = {"metadata": {"finalizers": ["example.com/wait"]}}
    await scene.others.patch(RESOURCE_CLAIMS, ObjectKey("default", "claim"), held)
    await scene.delete()


async def replace_by_another(scene: Scene) -> None:
    await scene.delete()
    await scene.claim()


def test_the_finalizer_is_written_before_the_status() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()

        written = await writer.allocate_and_reserve(claim, POD, GPU_0, None)

        assert scene.way.asked == ["PUT claim", "PUT status"]
        assert written.metadata.finalizers == (DELETE_PROTECTION,)
        assert written.status.allocation == GPU_0
        assert consumers(written) == [("", "pods", "pod", POD.uid)]
        assert written == await scene.stored()

    played(story)


def test_a_finalizer_that_is_there_is_not_written_again() -> None:
    claim = a_stored_claim(finalizers=("a", DELETE_PROTECTION))

    assert with_finalizer(claim) is claim
    assert with_finalizer(a_stored_claim(finalizers=("a",))).metadata.finalizers == (
        "a",
        DELETE_PROTECTION,
    )


def test_the_allocation_timestamp_is_set_where_needed() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()

        written = await writer.allocate_and_reserve(claim, POD, GPU_0, NOW)

        assert written.status.allocation is not None
        assert written.status.allocation.allocation_timestamp == NOW

    played(story)


def test_an_allocated_claim_only_gets_a_reservation() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0, OTHER)

        written = await writer.allocate_and_reserve(claim, POD, None, NOW)

        assert scene.way.asked == ["PUT status"]
        assert [name for _, _, name, _ in consumers(written)] == ["other", "pod"]
        assert written.status.allocation == GPU_0

    played(story)


def test_a_claim_that_is_reserved_already_is_left_alone() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0, POD)

        written = await writer.allocate_and_reserve(claim, POD, None, NOW)

        assert written is claim
        assert scene.way.asked == []

    played(story)


@pytest.mark.parametrize("number", [1, 2], ids=["before-the-finalizer", "before-the-status"])
def test_on_a_conflict_the_claim_is_read_again(number: int) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()
        scene.way.before[number] = scene.touch

        written = await writer.allocate_and_reserve(claim, POD, GPU_0, None)

        assert written.status.allocation == GPU_0
        assert written.metadata.labels, "what the other one did is still there"
        assert scene.way.asked[number : number + 1] == ["GET claim"]

    played(story)


def test_after_too_many_conflicts_it_gives_up() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()
        scene.way.before = dict.fromkeys(range(1, 20), scene.touch)

        with pytest.raises(ClaimChangedError, match="add allocation and reservation to claim"):
            await writer.allocate_and_reserve(claim, POD, GPU_0, None)

        assert scene.way.asked.count("PUT claim") == ATTEMPTS

    played(story)


@pytest.mark.parametrize(
    ("meanwhile", "decided", "text"),
    [
        pytest.param(
            lambda scene: scene.allocate(GPU_1, OTHER),
            GPU_0,
            "claim default/claim got allocated elsewhere in the meantime",
            id="allocated-by-another",
        ),
        pytest.param(
            lambda scene: scene.allocate(GPU_1, POD),
            GPU_0,
            "claim default/claim got allocated elsewhere in the meantime",
            id="allocated-by-another-for-the-same-pod",
        ),
        pytest.param(
            delete_in_use,
            GPU_0,
            "claim default/claim got deleted in the meantime",
            id="being-deleted",
        ),
        pytest.param(
            replace_by_another,
            GPU_0,
            "claim default/claim got deleted in the meantime",
            id="replaced-by-another-of-the-same-name",
        ),
    ],
)
def test_a_decision_that_came_too_late(
    meanwhile: Callable[[Scene], Coroutine[Any, Any, Any]], decided: AllocationResult, text: str
) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()
        scene.way.before[1] = lambda: meanwhile(scene)

        with pytest.raises(ClaimChangedError) as raised:
            await writer.allocate_and_reserve(claim, POD, decided, None)

        assert str(raised.value) == text
        stored = await scene.stored()
        assert stored.status.allocation != decided, "nothing of ours was written"

    played(story)


@pytest.mark.parametrize(
    ("then", "text"),
    [
        (None, "claim default/claim got deallocated elsewhere in the meantime"),
        (GPU_1, "claim default/claim got allocated elsewhere in the meantime"),
    ],
    ids=["deallocated", "allocated-anew-on-another-node"],
)
def test_a_reservation_counts_on_the_allocation_that_was_seen(
    then: AllocationResult | None, text: str
) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)

        async def meanwhile() -> None:
            await scene.allocate(None)
            if then is not None:
                await scene.allocate(then)

        scene.way.before[1] = meanwhile

        with pytest.raises(ClaimChangedError) as raised:
            await writer.allocate_and_reserve(claim, POD, None, None)

        assert str(raised.value) == text
        assert consumers(await scene.stored()) == []

    played(story)


def test_what_is_known_by_now_saves_a_conflict() -> None:
    async def story(scene: Scene, _: ClaimWriter) -> None:
        await scene.claim()
        seen = await scene.allocate(GPU_0)
        newest = await scene.allocate(GPU_0, OTHER)
        writer = ClaimWriter(scene.client, lambda _: newest)

        written = await writer.allocate_and_reserve(seen, POD, None, None)

        assert scene.way.asked == ["PUT status"]
        assert [name for _, _, name, _ in consumers(written)] == ["other", "pod"]

    played(story)


def test_a_write_whose_answer_got_lost_was_ours() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()

        async def twice() -> None:
            # As if the answer to a first attempt had been lost, and the request sent again.
            await scene.allocate(GPU_0, POD)

        scene.way.before[2] = twice

        written = await writer.allocate_and_reserve(claim, POD, GPU_0, NOW)

        assert written == await scene.stored()
        assert [name for _, _, name, _ in consumers(written)] == ["pod"]

    played(story)


def test_a_server_that_is_gone_is_a_client_error() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        claim = await scene.claim()

        async def broken() -> None:
            raise TransportError("gone", was_sent=True)

        scene.way.before[2] = broken

        with pytest.raises(ClientError, match="gone"):
            await writer.allocate_and_reserve(claim, POD, GPU_0, None)

    played(story)


def test_the_257th_pod_is_refused() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0, *(a_pod_info(f"pod-{number}") for number in range(255)))
        claim = await writer.allocate_and_reserve(claim, a_pod_info("last"), None, None)

        with pytest.raises(
            ClaimChangedError, match="add reservation to claim default/claim: "
        ) as raised:
            await writer.allocate_and_reserve(claim, POD, None, None)

        assert "reservedFor" in str(raised.value)
        assert len((await scene.stored()).status.reserved_for) == 256

    played(story)


def test_a_reservation_is_taken_back_alone() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        await scene.claim()
        claim = await scene.allocate(GPU_0, pod, OTHER)
        await scene.touch()

        left = await writer.drop_reservation(claim, pod)

        assert left == await scene.stored(), "older versions do as well"
        assert [name for _, _, name, _ in consumers(left)] == ["other"]
        assert left.status.allocation == GPU_0

    played(story)


def test_a_pod_that_is_gone_leaves_no_allocation_behind() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0, POD)

        left = await writer.drop_reservation(claim, POD)

        assert left == await scene.stored()
        assert left.status == ResourceClaimStatus()

    played(story)


def test_a_pod_that_has_a_node_keeps_its_reservation() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        await scene.claim()
        claim = await scene.allocate(GPU_0, pod)
        await scene.bind(pod)

        assert await writer.drop_reservation(claim, pod) is None
        assert len((await scene.stored()).status.reserved_for) == 1

    played(story)


# --- two schedulers ---


@pytest.mark.parametrize("number", [1, 2], ids=["one-conflict", "two-conflicts"])
def test_a_conflict_never_costs_another_pod_its_reservation(number: int) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)
        doings = [lambda: scene.allocate(GPU_0, OTHER), lambda: scene.allocate(GPU_0, OTHER, THIRD)]
        scene.way.before = dict(zip((1, 3), doings[:number], strict=False))

        written = await writer.allocate_and_reserve(claim, POD, None, None)

        names = [name for _, _, name, _ in consumers(written)]
        assert names == [*["other", "third"][:number], "pod"]
        assert written == await scene.stored()

    played(story)


@pytest.mark.parametrize("number", [2, 3], ids=["before-the-write", "after-the-write"])
def test_a_pod_bound_by_another_scheduler_meanwhile_keeps_its_reservation(number: int) -> None:
    """The other one found the claim reserved, by us, and counted on that."""

    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        await scene.claim()
        claim = await scene.allocate(GPU_0, pod, OTHER)
        scene.way.before[number] = lambda: scene.bind(pod)

        left = await writer.drop_reservation(claim, pod)

        assert left == await scene.stored()
        assert [name for _, _, name, _ in consumers(left)] == ["other", "pod"]

    played(story)


def test_a_bound_pod_gets_back_what_another_scheduler_took() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        await scene.claim()
        claim = await scene.allocate(GPU_0, pod)
        await scene.bind(pod)
        await scene.allocate(GPU_0, OTHER)

        kept = await writer.keep_reserved(claim, pod)

        assert kept == await scene.stored()
        assert [name for _, _, name, _ in consumers(kept)] == ["other", "pod"]
        assert await writer.keep_reserved(claim, pod) == kept, "and only once"

    played(story)


@pytest.mark.parametrize("then", [None, GPU_1], ids=["nothing", "other-devices"])
def test_a_claim_that_holds_something_else_is_not_reserved_again(
    then: AllocationResult | None,
) -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        await scene.claim()
        claim = await scene.allocate(GPU_0, pod)
        await scene.allocate(None)
        await scene.allocate(then)

        assert await writer.keep_reserved(claim, pod) == await scene.stored()
        assert consumers(await scene.stored()) == []

    played(story)


def test_a_claim_that_is_gone_is_not_reserved_again() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        assert await writer.keep_reserved(a_stored_claim(), POD) is None

    played(story)


def test_a_reservation_on_a_successor_is_not_touched() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        pod = await scene.pod()
        claim = await scene.claim()
        await replace_by_another(scene)
        await scene.allocate(GPU_0, pod)

        await writer.drop_reservation(claim, pod)

        assert len((await scene.stored()).status.reserved_for) == 1
        await writer.drop_reservation(claim, POD)  # a pod that is gone
        assert len((await scene.stored()).status.reserved_for) == 1

    played(story)


def test_deallocation_clears_the_whole_status() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0, POD)

        left = await writer.deallocate(claim)

        assert scene.way.asked == ["PUT status"]
        assert left.status.allocation is None
        assert left.status.reserved_for == ()

    played(story)


def test_deallocation_of_a_claim_that_changed_is_refused() -> None:
    async def story(scene: Scene, writer: ClaimWriter) -> None:
        await scene.claim()
        claim = await scene.allocate(GPU_0)
        await scene.allocate(GPU_0, OTHER)

        with pytest.raises(ClientError):
            await writer.deallocate(claim)

        assert len((await scene.stored()).status.reserved_for) == 1

    played(story)
