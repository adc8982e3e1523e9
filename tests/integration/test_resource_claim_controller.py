"""The ResourceClaim controller against the API server; scheduler and node are played by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.features import ADMIN_ACCESS, DEFAULTS, PRIORITIZED_LIST
from tests.integration.resource_claims_cluster import (
    CLAIMS,
    POD_CLAIM_NAME,
    PODS,
    REFUSAL,
    TEMPLATES,
    Cluster,
    has_its_claims,
    owner_of,
    run,
    told,
    until,
)

CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"


# --- claims from templates ---


def test_a_template_becomes_a_claim_of_the_pod() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        metadata = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
        template = await cluster.add_template(metadata=metadata)
        await cluster.add_pod("p", {"gpu": "t"})

        pod = await cluster.until_pod("p", has_its_claims)

        (claim,) = await cluster.claims()
        made = claim["metadata"]
        assert told(pod) == {"gpu": made["name"]}
        assert made["generateName"] == "p-gpu-"
        assert made["name"].startswith("p-gpu-")
        assert len(made["name"]) == len("p-gpu-") + 5
        assert made["labels"] == {"app": "x"}
        assert made["annotations"] == {"note": "y", POD_CLAIM_NAME: "gpu"}
        assert made["ownerReferences"] == [owner_of(pod)]
        assert claim["spec"] == template["spec"]["spec"]

    run(scenario)


def test_several_entries_are_told_sorted_and_with_what_others_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_template()
        await cluster.add_claim("shared")
        await cluster.add_pod("p", {"z": "t", "m": "t", "a": "t", "s": "=shared"})
        others = [{"name": "m"}]  # it needs none
        status = {"status": {"resourceClaimStatuses": others}}
        assert (await cluster.patch(f"{PODS}/p/status", status)).code == 200
        cluster.start()

        pod = await cluster.until_pod("p", has_its_claims)

        statuses = pod["status"]["resourceClaimStatuses"]
        assert [one["name"] for one in statuses] == ["a", "m", "z"]
        assert statuses[1] == others[0]
        assert len(await cluster.claims()) == 3

    run(scenario)


def test_a_template_that_appears_later_serves_the_pods_that_wait() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template("there")
        await cluster.add_pod("p", {"one": "there", "two": "t"})
        event = await cluster.until_event("FailedResourceClaimCreation")
        assert event["type"] == "Warning"
        assert event["regarding"]["name"] == "p"
        assert event["note"] == (
            'PodResourceClaim two: resource claim template "t": '
            'resourceclaimtemplate.resource.k8s.io "t" not found'
        )
        pod = await cluster.until_pod("p", lambda pod: bool(told(pod)))
        assert told(pod).keys() == {"one"}

        await cluster.add_template()

        pod = await cluster.until_pod("p", has_its_claims)
        assert told(pod).keys() == {"one", "two"}

    run(scenario)


@pytest.mark.parametrize(
    ("gate", "request_", "reason"),
    [
        pytest.param(
            ADMIN_ACCESS,
            {"exactly": {"deviceClassName": "gpu", "adminAccess": True}},
            "admin access is requested, but the feature is disabled",
            id="admin-access",
        ),
        pytest.param(
            PRIORITIZED_LIST,
            {"firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]},
            "template includes a prioritized list of subrequests, but the feature is disabled",
            id="prioritized-list",
        ),
    ],
)
def test_an_event_names_the_disabled_feature(
    gate: str, request_: dict[str, Any], reason: str
) -> None:
    async def scenario(cluster: Cluster) -> None:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        path = "/api/v1/namespaces/default"
        assert (await cluster.patch(path, {"metadata": {"labels": labels}})).code == 200
        cluster.start(DEFAULTS.switched({gate: False}))
        await cluster.add_template(request=request_)
        await cluster.add_pod()

        event = await cluster.until_event("FailedResourceClaimCreation")

        assert event["note"] == f"PodResourceClaim gpu: {reason}"
        assert await cluster.claims() == []

    run(scenario)


def test_a_refused_claim_is_an_event_and_retried() -> None:
    async def scenario(cluster: Cluster) -> None:
        running = cluster.start()
        running.transport.refuses_claims = True
        await cluster.add_template()
        await cluster.add_pod()
        event = await cluster.until_event("FailedResourceClaimCreation")
        assert event["note"].startswith("PodResourceClaim gpu: create ResourceClaim p-gpu-")
        assert event["note"].endswith(f": {REFUSAL}")

        running.transport.refuses_claims = False

        await cluster.until_pod("p", has_its_claims)
        labels = {"admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"}
        failures = running.metric(CREATES, status="failure", **labels)
        assert failures is not None
        assert failures >= 1
        assert running.metric(CREATES, status="success", **labels) == 1
        uses = {"admin_access": "false", "prioritized_list": "false"}
        assert running.metric("resourceclaim_controller_create_total", **uses) == failures + 1
        assert running.metric("resourceclaim_controller_create_failures_total", **uses) == failures

    run(scenario)


def test_a_claim_missing_in_the_pod_status_is_used() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.add_template()
        pod = await cluster.add_pod()
        annotations = {POD_CLAIM_NAME: "gpu"}
        owners = [owner_of(pod)]
        await cluster.add_claim("made-before", annotations=annotations, ownerReferences=owners)
        cluster.start()

        pod = await cluster.until_pod("p", has_its_claims)

        assert told(pod) == {"gpu": "made-before"}
        assert len(await cluster.claims()) == 1

    run(scenario)


def test_a_deleted_claim_is_recreated() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        await cluster.add_pod()
        await cluster.until_pod("p", has_its_claims)
        (before,) = await cluster.claims()

        await cluster.delete(f"{CLAIMS}/{before['metadata']['name']}")

        async def look() -> bool | None:
            after = await cluster.claims()
            uids = [claim["metadata"]["uid"] for claim in after]
            return (uids and uids != [before["metadata"]["uid"]]) or None

        await until(look)
        pod, (claim,) = await cluster.pod(), await cluster.claims()
        assert told(pod) == {"gpu": claim["metadata"]["name"]}

    run(scenario)


def test_a_claim_name_already_in_use_is_avoided() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        await cluster.add_pod()
        pod = await cluster.until_pod("p", has_its_claims)
        name = told(pod)["gpu"]
        await cluster.stop()
        await cluster.delete(f"{CLAIMS}/{name}")
        await cluster.add_claim(name)
        cluster.start()

        pod = await cluster.until_pod("p", lambda pod: told(pod)["gpu"] != name)

        claim = await cluster.claim(told(pod)["gpu"])
        assert claim is not None
        assert claim["metadata"]["ownerReferences"] == [owner_of(pod)]

    run(scenario)


def test_names_of_any_length_work_and_templates_may_go() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start()
        await cluster.add_template()
        long, entry = "p" * 63, "e" * 63
        await cluster.add_pod(long, {entry: "t"})
        pod = await cluster.until_pod(long, has_its_claims)
        await cluster.delete(f"{TEMPLATES}/t")

        claim = await cluster.claim(told(pod)[entry])

        assert claim is not None
        assert claim["metadata"]["generateName"] == f"{'p' * 28}-{'e' * 28}-"

    run(scenario)


# --- several, and metrics ---


def test_two_controllers_make_one_claim_per_entry() -> None:
    async def scenario(cluster: Cluster) -> None:
        both = cluster.start(), cluster.start()
        meeting = asyncio.Barrier(2)
        for running in both:
            running.transport.meeting = meeting
        await cluster.add_template()
        await cluster.add_pod("p", {"a": "t", "b": "t"})

        pod = await cluster.until_pod("p", has_its_claims)

        async def both_are_done() -> bool | None:
            requests = [one.transport.requests for one in both]
            return all(("PATCH", f"{PODS}/p/status") in asked for asked in requests) or None

        await until(both_are_done)
        assert all(("POST", CLAIMS) in one.transport.writes for one in both)
        names = [claim["metadata"]["name"] for claim in await cluster.claims()]
        assert sorted(told(pod).values()) == sorted(names)
        assert told(await cluster.pod()) == told(pod)

    run(scenario)


def test_gauges_show_the_claims_there_are() -> None:
    async def scenario(cluster: Cluster) -> None:
        running = cluster.start()
        await cluster.add_template(
            request={"firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
        )
        await cluster.add_claim("plain")
        await cluster.add_pod()
        await cluster.until_pod("p", has_its_claims)
        await cluster.allocate("plain")

        def shown() -> dict[tuple[str, ...], float]:
            names = (
                "dynamic_resource_allocation_resource_claims",
                "resourceclaim_controller_resource_claims",
                "resourceclaim_controller_allocated_resource_claims",
            )
            return {
                (sample.name, *sample.labels.values()): sample.value
                for family in running.manager.registry.collect()
                for sample in family.samples
                if sample.name in names and sample.value
            }

        async def look() -> dict[tuple[str, ...], float] | None:
            found = shown()
            return found if len(found) == 5 else None

        claims, allocated = "resourceclaim_controller_resource_claims", "true"
        assert await until(look) == {
            (
                "dynamic_resource_allocation_resource_claims",
                "false",
                "false",
                "resource_claim_template",
            ): 1,
            ("dynamic_resource_allocation_resource_claims", allocated, "false", ""): 1,
            (claims, "false", "false"): 1,
            (claims, "false", "true"): 1,
            ("resourceclaim_controller_allocated_resource_claims", "false", "false"): 1,
        }
        assert running.metric("workqueue_adds_total", name="resource_claim")

    run(scenario)
