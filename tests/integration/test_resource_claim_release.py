"""The ResourceClaim controller when pods are done, or got their node by hand; see `test_resource_claim_controller`."""

from __future__ import annotations

import pytest

from tests.integration.resource_claims_cluster import (
    CLAIMS,
    FINALIZER,
    PODS,
    Cluster,
    consumer,
    has_its_claims,
    is_allocated,
    owner_of,
    reserved_for,
    run,
    told,
)

EXTENDED = "resource.kubernetes.io/extended-resource-claim"


# --- pods that are done ---


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_claim_of_a_finished_pod_goes(phase: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        await cluster.add_pod()
        _, (name,) = await cluster.run_pod()

        await cluster.set_phase("p", phase)

        await cluster.until_gone(name)
        assert (await cluster.pod())["status"]["phase"] == phase

    run(scenario)


def test_a_named_claim_stays_but_is_free_when_its_last_pod_is_done() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_claim("c")
        first = await cluster.add_pod("first", {"c": "=c"})
        second = await cluster.add_pod("second", {"c": "=c"})
        await cluster.allocate("c", first, second)
        for pod in (first, second):
            assert (await cluster.bind(pod)).code == 201

        await cluster.set_phase("first", "Succeeded")
        claim = await cluster.until_claim("c", lambda claim: len(reserved_for(claim)) == 1)
        assert reserved_for(claim) == [second["metadata"]["uid"]]
        assert is_allocated(claim)

        await cluster.delete_pod("second")
        claim = await cluster.until_claim("c", lambda c: "finalizers" not in c["metadata"])
        assert not is_allocated(claim)
        assert reserved_for(claim) == []

    run(scenario)


def test_a_claim_that_is_deleted_while_in_use_waits_for_its_pod() -> None:
    async def scenario(cluster: Cluster) -> None:
        running = cluster.start()
        await cluster.add_claim("c")
        await cluster.add_pod("p", {"c": "=c"})
        await cluster.run_pod()
        await cluster.delete(f"{CLAIMS}/c")
        # Another claim is dealt with meanwhile, so that the controller must have seen this one.
        await cluster.add_claim("other", finalizers=[FINALIZER])
        await cluster.delete(f"{CLAIMS}/other")
        await cluster.until_gone("other")
        claim = await cluster.claim("c")
        assert claim is not None
        assert is_allocated(claim)
        assert running.transport.writes == [("PATCH", f"{CLAIMS}/other")]

        await cluster.delete_pod("p")

        await cluster.until_gone("c")

    run(scenario)


def test_an_unused_allocation_stays_until_the_claim_is_deleted() -> None:
    async def scenario(cluster: Cluster) -> None:
        running = cluster.start()
        await cluster.add_claim("c")
        await cluster.allocate("c")
        await cluster.add_template()
        await cluster.add_pod()
        await cluster.until_pod("p", has_its_claims)
        claim = await cluster.claim("c")
        assert claim is not None
        assert is_allocated(claim)
        assert all(not path.startswith(f"{CLAIMS}/c") for _, path in running.transport.writes)

        await cluster.delete(f"{CLAIMS}/c")

        await cluster.until_gone("c")

    run(scenario)


def test_a_pod_deleted_before_it_had_a_node_needs_no_claims() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        pod = await cluster.add_pod()
        metadata = {"metadata": {"finalizers": ["example.com/wait"]}}
        assert (await cluster.patch(f"{PODS}/p", metadata)).code == 200
        pod = await cluster.until_pod("p", has_its_claims)
        name = told(pod)["gpu"]
        await cluster.allocate(name, pod)

        await cluster.delete_pod("p")

        await cluster.until_gone(name)
        assert (await cluster.pod())["metadata"]["deletionTimestamp"]

    run(scenario)


def test_a_pod_that_stops_on_its_node_keeps_its_claim_to_the_end() -> None:
    async def scenario(cluster: Cluster) -> None:
        running = cluster.start()
        await cluster.add_template()
        await cluster.add_pod()
        _, (name,) = await cluster.run_pod()
        await cluster.delete(f"{PODS}/p")
        await cluster.add_pod("other")
        await cluster.until_pod("other", has_its_claims)
        assert running.transport.writes[-1] == ("PATCH", f"{PODS}/other/status")
        claim = await cluster.claim(name)
        assert claim is not None
        assert is_allocated(claim)

        await cluster.delete_pod("p")

        claim = await cluster.until_claim(name, lambda claim: not is_allocated(claim))
        assert reserved_for(claim) == []

    run(scenario)


def test_the_claim_of_a_pod_that_was_replaced_goes() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        await cluster.add_pod()
        _, (name,) = await cluster.run_pod()
        await cluster.stop()
        await cluster.delete_pod("p")
        await cluster.add_pod()
        cluster.start()

        pod = await cluster.until_pod("p", has_its_claims)

        assert told(pod)["gpu"] != name
        await cluster.until_gone(name)

    run(scenario)


def test_reservations_of_others_than_pods_are_theirs() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_claim("c")
        pod = await cluster.add_pod("p", {"c": "=c"})
        await cluster.allocate("c", pod)
        other = {"apiGroup": "example.com", "resource": "jobs", "name": "p", "uid": "job"}
        status = {"status": {"reservedFor": [consumer(pod), other]}}
        assert (await cluster.patch(f"{CLAIMS}/c/status", status)).code == 200

        await cluster.delete_pod("p")

        claim = await cluster.until_claim("c", lambda claim: len(reserved_for(claim)) == 1)
        assert reserved_for(claim) == ["job"]
        assert is_allocated(claim)

    run(scenario)


def test_what_happened_while_no_controller_ran_is_caught_up_with() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        for name in ("gone", "finished", "running"):
            await cluster.add_pod(name)
        _, (gone,) = await cluster.run_pod("gone")
        _, (finished,) = await cluster.run_pod("finished")
        pod, (running,) = await cluster.run_pod("running")
        await cluster.stop()
        await cluster.delete_pod("gone")
        await cluster.set_phase("finished", "Succeeded")
        cluster.start()

        await cluster.until_gone(finished)
        await cluster.until_claim(gone, lambda claim: not is_allocated(claim))

        claim = await cluster.claim(running)
        assert claim is not None
        assert reserved_for(claim) == [pod["metadata"]["uid"]]

    run(scenario)


# --- extended resources, pods bound by hand ---


def test_the_claim_behind_extended_resources_goes_with_its_pod() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        pod = await cluster.add_pod("p", {})
        await cluster.add_claim(
            "x", annotations={EXTENDED: "true"}, ownerReferences=[owner_of(pod)]
        )
        await cluster.allocate("x", pod)
        status = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}
        await cluster.patch(f"{PODS}/p/status", {"status": status})
        assert (await cluster.bind(pod)).code == 201

        await cluster.set_phase("p", "Succeeded")

        await cluster.until_gone("x")

    run(scenario)


def test_a_pod_bound_by_hand_gets_its_reservations_once_there_is_an_allocation() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        await cluster.add_claim("c")
        await cluster.allocate("c")
        pod = await cluster.add_pod("p", {"gpu": "t", "c": "=c"}, nodeName="n1")
        uid = pod["metadata"]["uid"]

        claim = await cluster.until_claim("c", lambda claim: bool(reserved_for(claim)))
        assert claim["status"]["reservedFor"] == [consumer(pod)]
        name = told(await cluster.until_pod("p", has_its_claims))["gpu"]
        claim = await cluster.claim(name) or {}
        assert not is_allocated(claim)

        await cluster.allocate(name)

        claim = await cluster.until_claim(name, lambda claim: bool(reserved_for(claim)))
        assert reserved_for(claim) == [uid]

    run(scenario)
