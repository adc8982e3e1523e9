from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    CapacityRequirements,
    DeviceRequest,
    ResourceClaim,
)
from allot.api.identities import ObjectKey
from allot.api.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from allot.api.quantity import Quantity
from allot.api.slices import ResourcePool
from allot.client.errors import TransportError
from allot.features import DEFAULTS, PRIORITIZED_LIST
from allot.rules import RuleSet
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.dynamic_resources.allocation_cache import MAX_CLAIM_SETS
from allot.scheduler.plugins.dynamic_resources.filter_results import DynamicResourcesArgs
from allot.scheduler.plugins.dynamic_resources.scores import raw_score
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import (
    DRIVER,
    GPU,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_allocation,
    an_alternative,
    an_exact_request,
)
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.plugins.dynamic_resources.plugin_fixture import Bench
from tests.unit.scheduler.plugins.dynamic_resources.server import Scene, a_claim_write_scene
from tests.unit.scheduler.state.objects import a_pod_info

POD = a_pod_with_claims("claim")
CLASSLESS = an_exact_request(device_class_name="")
MISSING = an_exact_request(device_class_name="missing")
OK = ""


# --- pre_enqueue ---


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod_info(), ""),
        (POD, ""),
        (a_pod_with_claims("nothing"), 'could not find ResourceClaim "default/nothing"'),
    ],
)
def test_pods_without_their_claims_are_gated(pod: PodInfo, message: str) -> None:
    status = Bench(a_stored_claim()).plugin.pre_enqueue(pod)

    assert status.message == message
    assert status.code is (Code.UNRESOLVABLE if message else Code.SUCCESS)


# --- pre_filter ---


def test_a_pod_without_claims_is_none_of_its_business() -> None:
    assert Bench().pre_filter(a_pod_info()).is_skip


def test_a_pod_whose_entries_need_no_claim_is_none_of_its_business() -> None:
    pod = a_pod_info(
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
        status={"resourceClaimStatuses": [{"name": "gpu"}]},
    )

    assert Bench().pre_filter(pod).is_skip


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        pytest.param([a_request("r", GPU)], "", id="exactly"),
        pytest.param([a_request("r", first_available=(an_alternative(),))], "", id="alternatives"),
        pytest.param(
            [a_request("r", MISSING)],
            "request r: device class missing does not exist",
            id="no-such-class",
        ),
        pytest.param(
            [
                a_request(
                    "r",
                    first_available=(
                        an_alternative("s"),
                        an_alternative("t", device_class_name="missing"),
                    ),
                )
            ],
            "",
            id="no-such-class-of-one-alternative",
        ),
        pytest.param(
            [a_request("r", first_available=(an_alternative("t", device_class_name="missing"),))],
            "request r: device class missing of all alternatives does not exist",
            id="no-such-class-of-all-alternatives",
        ),
        pytest.param(
            [
                a_request(
                    "r",
                    first_available=(
                        an_alternative("s", device_class_name="missing"),
                        an_alternative("t", device_class_name="lost"),
                    ),
                )
            ],
            "request r: no device class of its alternatives exists: missing, lost",
            id="no-class-of-any-alternative",
        ),
        pytest.param(
            [
                a_request(
                    "r",
                    first_available=(
                        an_alternative("s"),
                        an_alternative("t", device_class_name=""),
                    ),
                )
            ],
            "request r/t: unsupported request type",
            id="no-class-name-of-an-alternative",
        ),
        pytest.param(
            [a_request("r", CLASSLESS)], "request r: unsupported request type", id="no-class-name"
        ),
        pytest.param(
            [a_request("r")],
            "resource claim default/claim, request r: unknown request type",
            id="neither-exactly-nor-alternatives",
        ),
        pytest.param(
            [a_request("ok", GPU), a_request("r", MISSING)],
            "request r: device class missing does not exist",
            id="every-request-is-looked-at",
        ),
    ],
)
def test_claims_that_cannot_be_allocated(requests: list[DeviceRequest], message: str) -> None:
    status = Bench(a_stored_claim("claim", *requests)).pre_filter(POD)

    assert status.message == message
    assert status.code is (Code.UNRESOLVABLE if message else Code.SUCCESS)


def test_with_the_rules_of_kubernetes_every_class_must_exist() -> None:
    missing = an_alternative("t", device_class_name="missing")
    claim = a_stored_claim("claim", a_request("r", first_available=(an_alternative("s"), missing)))

    status = Bench(claim, gates=DEFAULTS.with_rules(RuleSet.V1_38)).pre_filter(POD)

    assert status.message == "request r/t: device class missing does not exist"


def test_alternatives_need_their_feature() -> None:
    claim = a_stored_claim("claim", a_request("r", first_available=(an_alternative(),)))
    gates = DEFAULTS.switched({PRIORITIZED_LIST: False})

    assert Bench(claim, gates=gates).pre_filter(POD).message == (
        "resource claim default/claim, request r: has subrequests, but the DRAPrioritizedList "
        "feature is disabled"
    )


def test_a_claim_that_another_pod_is_getting_must_be_waited_for() -> None:
    bench = Bench(a_stored_claim())
    bench.reserve(a_pod_with_claims("claim", pod="other"))

    status = Bench.pre_filter(bench, POD)

    assert status.message == "resource claim default/claim is in the process of being allocated"
    assert status.code is Code.PENDING


def test_what_is_wrong_with_the_class_of_an_allocated_claim_does_not_matter() -> None:
    claim = a_stored_claim("claim", a_request("r", MISSING), allocation=an_allocation("gpu-0"))

    assert Bench(claim).pre_filter(POD).is_success


# --- filter ---


def test_nodes_with_a_free_device_fit() -> None:
    other = a_stored_claim("other", allocation=an_allocation("gpu-0", pool="node-1"))

    assert Bench(a_stored_claim(), other).messages(POD) == {
        "node-1": "cannot allocate all claims",
        "node-2": OK,
    }


def test_nothing_that_does_not_fit_can_be_helped_by_evicting_pods() -> None:
    bench = Bench(a_stored_claim(), slices=[])

    assert {status.code for status in bench.filter(POD).values()} == {Code.UNRESOLVABLE}


def test_several_claims_are_solved_together() -> None:
    bench = Bench(
        a_stored_claim("a"),
        a_stored_claim("b"),
        slices=[
            a_slice(name="one", node="node-1"),
            a_slice(a_device("x"), a_device("y"), name="two", node="node-2"),
        ],
    )

    assert bench.messages(a_pod_with_claims("a", "b")) == {
        "node-1": "cannot allocate all claims",
        "node-2": OK,
    }


def test_pools_that_contradict_themselves_are_named() -> None:
    broken = a_slice(a_device("x"), a_device("x"), name="broken", node="node-1")
    bench = Bench(a_stored_claim(), slices=[broken, a_slice(name="good", node="node-2")])

    assert bench.messages(POD) == {
        "node-1": "invalid resource pools were encountered",
        "node-2": OK,
    }


def test_an_allocated_claim_ties_the_pod_to_its_nodes() -> None:
    claim = a_stored_claim(allocation=an_allocation("gpu-0", node="node-2", pool="node-2"))
    bench = Bench(claim)

    assert bench.messages(POD) == {
        "node-1": "resourceclaim not available on the node",
        "node-2": OK,
    }
    assert bench.known.unavailable == {0}
    assert bench.plugin.allocations == 0


def test_an_allocated_claim_without_a_selector_can_be_used_anywhere() -> None:
    bench = Bench(a_stored_claim(allocation=an_allocation("gpu-0")))

    assert bench.messages(POD) == {"node-1": OK, "node-2": OK}


def test_what_cannot_be_allocated_is_said_before_what_is_not_available() -> None:
    tied = a_stored_claim("tied", allocation=an_allocation("gpu-0", node="node-2", pool="node-2"))
    bench = Bench(tied, a_stored_claim("new"), slices=[])

    assert bench.messages(a_pod_with_claims("tied", "new")) == {
        "node-1": "cannot allocate all claims",
        "node-2": "cannot allocate all claims",
    }
    assert bench.known.unavailable == set(), "giving up the other claim would not help"


def test_a_selector_that_fails_is_an_error_and_not_a_misfit() -> None:
    claim = a_stored_claim(
        "claim",
        a_request("r", an_exact_request(selectors=(a_selector("device.attributes['x'].y > 1"),))),
    )
    statuses = Bench(claim).filter(POD)

    assert {status.code for status in statuses.values()} == {Code.ERROR}
    assert "claim default/claim" in statuses["node-1"].message


def test_a_node_selector_that_makes_no_sense_is_an_error() -> None:
    wrong = NodeSelectorRequirement(key="a", operator="Near", values=("b",))
    selector = NodeSelector((NodeSelectorTerm(match_expressions=(wrong,)),))
    claim = a_stored_claim(allocation=AllocationResult(node_selector=selector))

    assert Bench(claim).filter(POD)["node-1"].code is Code.ERROR


def test_a_node_that_takes_too_long_is_passed_over() -> None:
    many = tuple(a_device(f"gpu-{number}", {"n": number}) for number in range(30))
    request = a_request("r", an_exact_request(count=20))
    bench = Bench(
        a_stored_claim("claim", request),
        slices=[a_slice(*many, name="s", node="node-1")],
        args=DynamicResourcesArgs(filter_timeout_seconds=0.00001),
    )

    statuses = bench.filter(POD)

    assert statuses["node-1"].message == "timed out trying to allocate devices"
    assert statuses["node-1"].code is Code.UNRESOLVABLE


@pytest.mark.parametrize(
    ("seconds", "steps"), [(10.0, 100_000), (0.5, 5_000), (0.0, 10**12), (1e-9, 1)]
)
def test_a_timeout_is_counted_in_steps(seconds: float, steps: int) -> None:
    assert DynamicResourcesArgs(seconds).budget.max_steps == steps


# --- what can be remembered ---


def test_claims_that_ask_for_the_same_rest_on_the_same() -> None:
    bench = Bench(a_stored_claim("a"), a_stored_claim("b"))
    keys = []
    for name in ("a", "b"):
        bench.filter(a_pod_with_claims(name))
        keys.append(bench.plugin.equivalence_key(bench.state, POD))

    assert keys[0] == keys[1] is not None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            a_stored_claim("b", a_request("gpu", an_exact_request(count=2))), id="a-number"
        ),
        pytest.param(
            a_stored_claim(
                "b", a_request("gpu", an_exact_request(selectors=(a_selector("true"),)))
            ),
            id="a-selector",
        ),
    ],
)
def test_claims_that_ask_for_something_else_do_not(other: ResourceClaim) -> None:
    bench = Bench(a_stored_claim("a"), other)
    bench.filter(a_pod_with_claims("a"))
    first = bench.plugin.equivalence_key(bench.state, POD)
    bench.filter(a_pod_with_claims("b"))

    assert bench.plugin.equivalence_key(bench.state, POD) != first


def test_nothing_is_remembered_about_allocated_claims() -> None:
    bench = Bench(a_stored_claim("a"), a_stored_claim("b", allocation=an_allocation("gpu-0")))
    bench.filter(a_pod_with_claims("a", "b"))

    assert bench.plugin.equivalence_key(bench.state, POD) is None


# --- score ---


def test_the_better_alternative_scores_more() -> None:
    big = an_alternative("big", selectors=(a_selector(f"device.attributes['{DRIVER}'].big"),))
    claim = a_stored_claim("claim", a_request("r", first_available=(big, an_alternative("any"))))
    bench = Bench(
        claim,
        slices=[
            a_slice(a_device("x", {"big": False}), name="one", node="node-1"),
            a_slice(a_device("y", {"big": True}), name="two", node="node-2"),
        ],
    )
    bench.filter(POD)
    nodes = bench.cluster.nodes

    assert bench.plugin.pre_score(bench.state, POD, bench.cluster, nodes).is_success
    assert [bench.plugin.score(bench.state, POD, node) for node in nodes] == [
        raw_score(7, is_ready=True),
        raw_score(8, is_ready=True),
    ]


@pytest.mark.parametrize(
    "claim",
    [
        a_stored_claim(),
        a_stored_claim(
            "claim",
            a_request("r", first_available=(an_alternative(),)),
            allocation=an_allocation("gpu-0", request="r/a"),
        ),
    ],
    ids=["no-alternatives", "allocated-before"],
)
def test_there_is_nothing_to_score_without_a_choice(claim: ResourceClaim) -> None:
    bench = Bench(claim)
    bench.filter(POD)

    assert bench.plugin.pre_score(bench.state, POD, bench.cluster, bench.cluster.nodes).is_skip


def test_scores_that_were_forgotten_are_found_out_again() -> None:
    """The cycle may remember longer that a node fits."""
    claims = [
        a_stored_claim(
            f"c{number}",
            a_request("r", first_available=(an_alternative(f"a{number}"),)),
        )
        for number in range(MAX_CLAIM_SETS + 1)
    ]
    bench = Bench(*claims)
    for number in range(MAX_CLAIM_SETS + 1):
        bench.filter(a_pod_with_claims(f"c{number}"))
    first = a_pod_with_claims("c0")
    assert bench.pre_filter(first).is_success

    found = bench.plugin.score(bench.state, first, bench.cluster.nodes[0])
    assert found == raw_score(8, is_ready=True)


def test_each_state_of_equal_nodes_costs_one_search() -> None:
    """`reserve` and later pods reuse what `filter` found, until the devices change."""
    bench = Bench(*(a_stored_claim(f"c{number}") for number in range(3)))
    for number in range(2):
        pod = a_pod_with_claims(f"c{number}", pod=f"pod-{number}")
        bench.filter(pod)
        bench.cluster.assume_pod(pod, f"node-{number + 1}")
        bench.state = CycleState()
        assert bench.reserve(pod, f"node-{number + 1}").is_success

    assert bench.messages(a_pod_with_claims("c2"))["node-2"] == "cannot allocate all claims"
    assert bench.plugin.allocations == 2, "one for free devices, one for what is left"


@pytest.mark.parametrize("is_shared", [False, True])
def test_nodes_with_equal_devices_get_equal_allocations_of_one_search(is_shared: bool) -> None:
    """The result on one node is that of the other, in the pool of the other and for its node."""
    shared = a_device("gpu-0", capacity={"memory": "10Gi"}, allow_multiple_allocations=is_shared)
    slices = [a_slice(shared, name=name, node=name) for name in ("node-1", "node-2")]
    bench = Bench(*(a_stored_claim(f"c{number}") for number in range(3)), slices=slices)
    found = []
    for number in range(2):
        pod = a_pod_with_claims(f"c{number}", pod=f"pod-{number}")
        bench.filter(pod)
        bench.cluster.assume_pod(pod, f"node-{number + 1}")
        bench.state = CycleState()
        direct = bench.plugin.allocate_on(
            [a_stored_claim(f"c{number}")], bench.devices.target(bench.cluster.nodes[number])
        ).results
        before = bench.plugin.allocations
        assert bench.reserve(pod, f"node-{number + 1}").is_success
        assert bench.plugin.allocations == before
        (claim,) = bench.known.reserved
        assert claim.status.allocation is not None
        found.append(claim.status.allocation)
        assert without_share_ids(found[-1]) == without_share_ids(direct[0])

    assert [each.devices.results[0].pool for each in found] == ["node-1", "node-2"]
    assert len({each.devices.results[0].share_id for each in found}) == 1 + is_shared


def without_share_ids(allocation: AllocationResult) -> AllocationResult:
    results = tuple(replace(each, share_id=None) for each in allocation.devices.results)
    return replace(allocation, devices=replace(allocation.devices, results=results))


def test_every_share_gets_an_identity_of_its_own() -> None:
    shared = a_device("gpu-0", capacity={"memory": "10Gi"}, allow_multiple_allocations=True)
    wanted = CapacityRequirements(requests={"memory": Quantity.parse("1Gi")})
    request = a_request("r", an_exact_request(capacity=wanted))
    claims = [a_stored_claim(f"c{number}", request) for number in range(3)]
    slices = [a_slice(shared, name="node-1", node="node-1")]
    bench = Bench(*claims, slices=slices)
    for number in range(3):
        bench.state = CycleState()
        assert bench.reserve(a_pod_with_claims(f"c{number}", pod=f"pod-{number}")).is_success

    entered = [
        allocation.devices.results[0].share_id for _, allocation in bench.tracker._entered.values()
    ]
    assert len(set(entered)) == 3


# --- reserve and unreserve ---


def test_reserved_devices_are_taken_for_other_pods() -> None:
    bench = Bench(a_stored_claim(), a_stored_claim("other"))

    assert bench.reserve(POD).is_success

    assert bench.taken()
    assert bench.tracker.has_pending_allocation("uid-claim")
    assert bench.tracker.get(ObjectKey("default", "claim")) == a_stored_claim(), "not written yet"
    assert bench.messages(a_pod_with_claims("other"))["node-1"] == "cannot allocate all claims"


def test_what_is_reserved_carries_its_allocation() -> None:
    bench = Bench(a_stored_claim())
    bench.reserve(POD)

    (claim,) = bench.known.reserved

    assert claim.status.allocation is not None
    assert [result.device for result in claim.status.allocation.devices.results] == ["gpu-0"]


def test_a_node_that_was_only_remembered_to_fit_is_searched_at_the_end() -> None:
    bench = Bench(a_stored_claim())
    assert bench.pre_filter(POD).is_success

    assert bench.plugin.reserve(bench.state, POD, "node-2").is_success

    assert bench.taken("node-2")
    assert bench.plugin.allocations == 1


def test_a_node_where_nothing_fits_any_more_is_an_error() -> None:
    bench = Bench(a_stored_claim(), slices=[])
    bench.pre_filter(POD)

    status = bench.plugin.reserve(bench.state, POD, "node-1")

    assert status.code is Code.ERROR
    assert status.message == "claim allocation not found for node"


@pytest.mark.parametrize("node", ["node-1", "gone"])
def test_unreserve_frees_whatever_was_reserved(node: str) -> None:
    bench = Bench(a_stored_claim())
    bench.reserve(POD, node)

    bench.plugin.unreserve(bench.state, POD, node)
    bench.plugin.unreserve(bench.state, POD, node)

    assert not bench.taken()
    assert not bench.tracker.has_pending_allocation("uid-claim")
    assert bench.tasks == [], "nothing was written, so nothing is taken back"


def test_pods_without_claims_pass_through() -> None:
    bench = Bench()
    bench.pre_filter(a_pod_info())

    assert bench.plugin.reserve(bench.state, a_pod_info(), "node-1").is_success
    bench.plugin.unreserve(bench.state, a_pod_info(), "node-1")
    assert not bench.plugin.needs_pre_bind(bench.state, a_pod_info(), "node-1")


# --- with an API server ---


def played(story: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with a_claim_write_scene() as scene:
            await story(scene)

    asyncio.run(main())


async def a_bench(scene: Scene, *claims: str, **fields: Any) -> Bench:
    return Bench(*[await scene.stored(name) for name in claims], client=scene.client, **fields)


def reserved_for(claim: ResourceClaim) -> list[str]:
    return [consumer.name for consumer in claim.status.reserved_for]


def test_pre_bind_writes_and_lands() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        bench = await a_bench(scene, "claim")
        bench.reserve(POD)
        assert bench.plugin.needs_pre_bind(bench.state, POD, "node-1")

        assert (await bench.plugin.pre_bind(bench.state, POD, "node-1")).is_success

        stored = await scene.stored()
        assert stored == bench.tracker.get(ObjectKey("default", "claim"))
        assert reserved_for(stored) == ["pod"]
        assert stored.status.allocation is not None
        assert stored.status.allocation.allocation_timestamp is None, "no binding conditions"
        assert not bench.tracker.has_pending_allocation(stored.metadata.uid)
        assert bench.taken()

    played(story)


@pytest.mark.parametrize("is_taken_back", [True, False], ids=["taken-back", "as-it-was"])
def test_a_reservation_that_was_found_is_looked_at_again_after_binding(is_taken_back: bool) -> None:
    """Another scheduler with the same pod in hand may give up and take back what we count on."""

    async def story(scene: Scene) -> None:
        await scene.claim()
        pod = await scene.pod("pod", "claim")
        await scene.allocate(an_allocation("gpu-0", node="node-1"), pod)
        bench = await a_bench(scene, "claim")
        bench.reserve(pod)
        assert (await bench.plugin.pre_bind(bench.state, pod, "node-1")).is_success
        assert scene.way.asked == [], "it was reserved already"
        if is_taken_back:
            await scene.allocate(an_allocation("gpu-0", node="node-1"))

        bench.plugin.post_bind(bench.state, pod, "node-1")
        await asyncio.gather(*bench.tasks)

        assert reserved_for(await scene.stored()) == ["pod"]
        assert scene.way.asked == ["GET claim"] + ["PUT status"] * is_taken_back
        assert bench.tracker.get(ObjectKey("default", "claim")) == await scene.stored()

    played(story)


def test_what_we_reserved_ourselves_costs_no_further_look() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        bench = await a_bench(scene, "claim")
        bench.reserve(POD)
        await bench.plugin.pre_bind(bench.state, POD, "node-1")

        bench.plugin.post_bind(bench.state, POD, "node-1")

        assert bench.tasks == []

    played(story)


def test_a_shared_claim_only_gets_another_reservation() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        await scene.allocate(an_allocation("gpu-0", node="node-1"), a_pod_info("other"))
        bench = await a_bench(scene, "claim")
        assert bench.reserve(POD).is_success

        assert (await bench.plugin.pre_bind(bench.state, POD, "node-1")).is_success

        assert reserved_for(await scene.stored()) == ["other", "pod"]
        assert scene.way.asked == ["PUT status"]

    played(story)


def test_a_failure_half_way_takes_back_what_was_written() -> None:
    async def story(scene: Scene) -> None:
        pod = await scene.pod("pod", "a", "b")
        await scene.claim("a")
        await scene.claim("b")
        two = a_slice(a_device("gpu-0"), a_device("gpu-1"), name="s", node="node-1")
        bench = await a_bench(scene, "a", "b", slices=[two])
        bench.reserve(pod)
        scene.way.before[3] = lambda: scene.allocate(an_allocation("gpu-9"), name="b")

        status = await bench.plugin.pre_bind(bench.state, pod, "node-1")
        assert status.code is Code.ERROR
        assert status.message == "claim default/b got allocated elsewhere in the meantime"
        bench.plugin.unreserve(bench.state, pod, "node-1")
        await bench.finish()

        first, second = await scene.stored("a"), await scene.stored("b")
        assert reserved_for(first) == []
        assert first.status.allocation is not None, "it stays, for the next attempt"
        assert bench.taken(device="gpu-0")
        assert not bench.taken(device="gpu-1"), "the second claim has something else"
        assert bench.taken(device="gpu-9"), "and that is known without waiting for the informer"
        for claim in (first, second):
            assert not bench.tracker.has_pending_allocation(claim.metadata.uid)
            assert bench.tracker.get(ObjectKey("default", claim.metadata.name)) == claim

    played(story)


def test_a_write_that_arrived_without_an_answer_keeps_its_devices_taken() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        bench = await a_bench(scene, "claim")
        bench.reserve(POD)

        async def lost() -> None:
            raise TransportError("the answer was lost", was_sent=True)

        scene.way.after[2] = lost

        status = await bench.plugin.pre_bind(bench.state, POD, "node-1")
        bench.plugin.unreserve(bench.state, POD, "node-1")
        await bench.finish()

        assert status.code is Code.ERROR
        assert (await scene.stored()).status.allocation is not None
        assert bench.taken()

    played(story)


def test_reservations_of_another_scheduler_are_not_taken_back() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        bench = await a_bench(scene, "claim")
        bench.reserve(POD)
        theirs = an_allocation("gpu-0", node="node-2", pool="node-2")
        await scene.allocate(theirs, POD)

        assert (await bench.plugin.pre_bind(bench.state, POD, "node-1")).code is Code.ERROR
        bench.plugin.unreserve(bench.state, POD, "node-1")
        await bench.finish()

        assert reserved_for(await scene.stored()) == ["pod"]

    played(story)


def test_the_next_attempt_waits_until_the_last_one_is_taken_back() -> None:
    async def story(scene: Scene) -> None:
        pod = await scene.pod("pod", "claim")
        await scene.claim()
        bench = await a_bench(scene, "claim")
        bench.reserve(pod)
        await bench.plugin.pre_bind(bench.state, pod, "node-1")
        bench.plugin.unreserve(bench.state, pod, "node-1")
        bench.state = CycleState()
        assert bench.reserve(pod).is_success, "the reservation seems to be there still"

        assert (await bench.plugin.pre_bind(bench.state, pod, "node-1")).is_success
        await bench.finish()

        assert reserved_for(await scene.stored()) == ["pod"]

    played(story)


# --- post_filter ---


@pytest.mark.parametrize(
    ("consumers", "deallocated"),
    [
        pytest.param([], True, id="unused"),
        pytest.param(["pod"], True, id="only-this-pod-uses-it"),
        pytest.param(["other"], False, id="another-pod-uses-it"),
        pytest.param(["pod", "other"], False, id="both-use-it"),
    ],
)
def test_a_claim_that_ties_the_pod_is_given_back(consumers: list[str], deallocated: bool) -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        pods = {"pod": POD, "other": a_pod_info("other")}
        tied = an_allocation("gpu-0", node="node-1")
        await scene.allocate(tied, *(pods[name] for name in consumers))
        bench = await a_bench(scene, "claim")
        bench.filter(POD)  # and node-1 refuses for other reasons

        status, nominated = await bench.plugin.post_filter(bench.state, POD, bench.cluster, {})

        stored = await scene.stored()
        assert status.code is Code.UNSCHEDULABLE
        assert nominated is None
        assert (stored.status.allocation is None) is deallocated
        expected = "deallocation of ResourceClaim completed" if deallocated else ""
        assert status.message == expected
        assert bench.tracker.get(ObjectKey("default", "claim")) == stored

    played(story)


def test_one_claim_is_given_back_at_a_time() -> None:
    async def story(scene: Scene) -> None:
        for name, node in (("a", "node-1"), ("b", "node-2")):
            await scene.claim(name)
            await scene.allocate(an_allocation("gpu-0", node=node, pool=node), name=name)
        bench = await a_bench(scene, "a", "b")
        bench.filter(a_pod_with_claims("a", "b"))
        assert bench.known.unavailable == {0, 1}

        await bench.plugin.post_filter(bench.state, POD, bench.cluster, {})

        left = [(await scene.stored(name)).status.allocation is not None for name in "ab"]
        assert left == [False, True]

    played(story)


def test_a_claim_reserved_meanwhile_is_not_deallocated() -> None:
    async def story(scene: Scene) -> None:
        await scene.claim()
        tied = an_allocation("gpu-0", node="node-1")
        await scene.allocate(tied)
        bench = await a_bench(scene, "claim")
        bench.filter(POD)
        await scene.allocate(tied, a_pod_info("other"))

        answer = await bench.plugin.post_filter(bench.state, POD, bench.cluster, {})

        assert answer.status.code is Code.ERROR
        assert reserved_for(await scene.stored()) == ["other"]

    played(story)


@pytest.mark.parametrize("pod", [a_pod_info(), POD], ids=["no-claims", "nothing-tied"])
def test_nothing_is_given_back_without_need(pod: PodInfo) -> None:
    bench = Bench(a_stored_claim(), slices=[])
    if pod.claims:
        bench.filter(pod)

    status, _ = asyncio.run(bench.plugin.post_filter(bench.state, pod, bench.cluster, {}))

    assert status.code is Code.UNSCHEDULABLE
    assert status.message == ""


def test_the_pool_of_another_generation_is_another_view() -> None:
    bench = Bench(a_stored_claim())
    bench.devices.put_slice(
        a_slice(a_device("new"), name="node-1", pool=ResourcePool("node-1", 2, 1))
    )
    bench.reserve(POD)

    assert bench.taken(device="new")
