"""Drivers behind sockets on simulated nodes: registration, prepare and unprepare, updates, health.

The names of the tests follow Kubernetes' end-to-end tests of the kubelet; docs/drivers.md lists what is promised. They run with
a bare driver of their own, and with one made with the SDK.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from allot.api.identities import ObjectKey
from allot.client.apply import RefusedError
from allot.client.options import DeleteOptions
from allot.client.resources import PODS
from allot.kubelet.dra.checkpoint import Checkpoint
from allot.proto import dra_health_pb2, pod_resources_pb2
from allot.proto.services import GET_POD_RESOURCES, LIST_POD_RESOURCES, V1, V1BETA1, call
from tests.integration.dra_driver import FakeDriver, device_class
from tests.integration.driver_site import (
    Site,
    a_request,
    a_template,
    claim_of,
    pod_with_claims,
    running_site,
)
from tests.integration.sdk_driver import SdkDriver

GRACE_SECONDS = 2.0


DRIVERS = {"bare": FakeDriver, "sdk": SdkDriver}
BARE = pytest.mark.parametrize("site", ["bare"], indirect=True)
"""For what the SDK's drivers do not do, such as announcing unknown versions; tests/integration/test_driver_sdk.py has their health."""


@pytest.fixture(scope="module", params=["bare", pytest.param("sdk", marks=pytest.mark.slow)])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    plugin_dir = Path(tempfile.mkdtemp(prefix="allot-"))  # short: it has sockets
    try:
        with running_site(
            tmp_path_factory.mktemp("cluster"), plugin_dir, driver_grace_seconds=GRACE_SECONDS
        ) as running:
            running.driver_type = DRIVERS[request.param]
            yield running
    finally:
        shutil.rmtree(plugin_dir)


def checkpointed(site: Site, node: str) -> dict[str, set[str]]:
    """Names of claims, and the UIDs of their pods."""
    infos = Checkpoint(site.paths(node).checkpoint).load()
    return {info.reference.name: info.pod_uids for info in infos}


def devices_of(pod: dict[str, Any]) -> Any:
    return json.loads(pod["metadata"]["annotations"]["allot.dev/container-devices"])


def test_a_driver_registers_and_its_pods_run(site: Site) -> None:
    site.add_node("k1")
    driver = site.start(site.driver("k1.example.com", "k1"), "k1")
    site.claim("k1", driver.name)
    site.pod("k1", {"x": "k1"})

    pod = site.runs("k1")

    assert driver.calls == [("prepare", ["k1"])]
    assert checkpointed(site, "k1") == {"k1": {pod["metadata"]["uid"]}}
    (device,) = devices_of(pod)["c"]["env"]
    assert device.startswith("R0=dev-")

    site.cluster.delete("Pod", "k1")
    site.gone("Pod", "k1")

    assert driver.calls == [("prepare", ["k1"]), ("unprepare", ["k1"])]
    assert driver.state == {}
    site.until(lambda: checkpointed(site, "k1") == {}, "the checkpoint")


def test_prepare_is_retried_until_the_pod_runs(site: Site) -> None:
    site.add_node("k2")
    driver = site.start(site.driver("k2.example.com", "k2"), "k2")
    driver.prepare_errors = ["no power", "no power"]
    site.claim("k2", driver.name)
    site.pod("k2", {"x": "k2"})

    assert site.failed_prepare("k2") == (
        "Failed to prepare dynamic resources: prepare dynamic resources: "
        "NodePrepareResources failed for ResourceClaim k2: no power"
    )
    site.runs("k2")
    assert driver.calls == [("prepare", ["k2"])] * 3


def test_a_pod_bound_by_hand_does_not_run_without_its_claim(site: Site) -> None:
    site.add_node("k3")
    driver = site.start(site.driver("k3.example.com", "k3"), "k3")
    site.claim("k3", driver.name)
    site.cluster.apply(pod_with_claims("k3", {"x": "k3"}, nodeName="k3"))

    assert "is not allowed to use ResourceClaim k3 (" in site.failed_prepare("k3")
    assert driver.calls == []
    pod = site.cluster.get("Pod", "k3")
    assert pod is not None
    assert pod["status"]["phase"] == "Pending"


def test_claims_of_a_force_deleted_pod_are_unprepared(site: Site) -> None:
    site.add_node("k4")
    driver = site.start(site.driver("k4.example.com", "k4"), "k4")
    site.claim("k4", driver.name)
    site.pod("k4", {"x": "k4"})
    site.runs("k4")

    site.cluster.run(force_delete(site, "k4"))

    site.until(lambda: ("unprepare", ["k4"]) in driver.calls, "unprepare")
    site.until(lambda: checkpointed(site, "k4") == {}, "the checkpoint")


async def force_delete(site: Site, name: str) -> None:
    await site.cluster.client.delete(
        PODS, ObjectKey("default", name), DeleteOptions(grace_period_seconds=0)
    )


def test_a_claim_that_no_container_uses_is_prepared(site: Site) -> None:
    site.add_node("k5")
    driver = site.start(site.driver("k5.example.com", "k5"), "k5")
    site.claim("k5", driver.name)
    site.cluster.apply(pod_with_claims("k5", {"x": "k5"}, containers=[{"name": "c", "image": "i"}]))

    pod = site.runs("k5")

    assert driver.calls == [("prepare", ["k5"])]
    assert "allot.dev/container-devices" not in pod["metadata"].get("annotations", {})


def test_each_container_gets_only_its_devices(site: Site) -> None:
    """Several claims in one call; a container may name one request of a claim."""
    site.add_node("k6")
    driver = site.start(site.driver("k6.example.com", "k6"), "k6")
    site.claim("k6-a", driver.name, driver.name)
    site.claim("k6-b", driver.name)
    claims = {"a": "k6-a", "b": "k6-b"}
    containers = [
        {"name": "all", "image": "i", "resources": {"claims": [{"name": "a"}]}},
        {"name": "one", "image": "i", "resources": {"claims": [{"name": "a", "request": "r1"}]}},
        {"name": "other", "image": "i", "resources": {"claims": [{"name": "b"}]}},
        {"name": "nothing", "image": "i"},
    ]
    site.cluster.apply(pod_with_claims("k6", claims, containers=containers))

    shown = devices_of(site.runs("k6"))

    assert driver.calls == [("prepare", ["k6-a", "k6-b"])]
    assert {name: len(part["cdiDevices"]) for name, part in shown.items()} == {
        "all": 2,
        "one": 1,
        "other": 1,
    }
    assert shown["one"]["env"] == [e for e in shown["all"]["env"] if e.startswith("R1=")]
    listed = site.cluster.run(pod_resources(site, "k6"))
    assert {
        container.name: [
            r.device_name for d in container.dynamic_resources for r in d.claim_resources
        ]
        for container in listed.containers
    }["other"] == [shown["other"]["env"][0].removeprefix("R0=")]


async def pod_resources(site: Site, name: str) -> Any:
    async with grpc.aio.insecure_channel(f"unix:{site.paths(name).pod_resources}") as channel:
        listed = await call(
            channel,
            LIST_POD_RESOURCES,
            pod_resources_pb2.ListPodResourcesRequest(),
            timeout_seconds=30,
        )
        assert [pod.name for pod in listed.pod_resources] == [name]
        request = pod_resources_pb2.GetPodResourcesRequest(pod_name=name, pod_namespace="default")
        got = await call(channel, GET_POD_RESOURCES, request, timeout_seconds=30)
        assert got.pod_resources == listed.pod_resources[0]
        missing = pod_resources_pb2.GetPodResourcesRequest(pod_name="missing")
        with pytest.raises(grpc.aio.AioRpcError, match="not found"):
            await call(channel, GET_POD_RESOURCES, missing, timeout_seconds=30)
        return got.pod_resources


def test_a_new_claim_of_the_same_name_waits_for_unprepare(site: Site) -> None:
    site.add_node("k7")
    driver = site.start(site.driver("k7.example.com", "k7"), "k7")
    site.claim("k7", driver.name)
    site.pod("k7", {"x": "k7"})
    site.runs("k7")
    driver.unprepare_blocked.clear()
    site.cluster.run(force_delete(site, "k7"))
    site.until(lambda: ("unprepare", ["k7"]) in driver.calls, "unprepare")
    site.cluster.delete("ResourceClaim", "k7")
    site.gone("ResourceClaim", "k7")

    site.claim("k7", driver.name)
    site.pod("k7-new", {"x": "k7"})

    assert "old ResourceClaim with same name k7 and different UID" in site.failed_prepare("k7-new")
    site.cluster.run(release(driver))
    site.runs("k7-new")
    assert [method for method, _ in driver.calls] == ["prepare", "unprepare", "prepare"]


async def release(driver: Any) -> None:
    driver.unprepare_blocked.set()


def test_admin_access_on_all_nodes(site: Site) -> None:
    site.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "admins",
                "labels": {"resource.kubernetes.io/admin-access": "true"},
            },
        }
    )
    drivers = []
    for node in ("k8-a", "k8-b"):
        site.add_node(node)
        drivers.append(site.start(site.driver("k8.example.com", node), node, devices=1))
    site.claim("k8", "k8.example.com")
    site.pod("k8", {"x": "k8"})
    site.runs("k8")
    request = a_request("r0", "k8.example.com", adminAccess=True, allocationMode="All")
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "monitor", "namespace": "admins"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    pod = pod_with_claims("monitor", {"x": "template:monitor"})["spec"]
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["k8-a", "k8-b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    labels = {"app": "monitor"}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "monitor", "namespace": "admins"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    site.cluster.apply(template, daemons)

    def running() -> set[str]:
        pods = site.cluster.list("Pod", "admins")
        return {p["spec"]["nodeName"] for p in pods if p["status"]["phase"] == "Running"}

    site.until(lambda: running() == {"k8-a", "k8-b"}, "pods on both nodes")


def test_slices_of_a_missing_driver_are_wiped_and_published_again(site: Site) -> None:
    site.add_node("k9")
    driver = site.start(site.driver("k9.example.com", "k9"), "k9")
    assert site.slice_uids(driver.name, "k9")

    site.cluster.run(driver.stop())
    site.until(lambda: not site.slice_uids(driver.name, "k9"), "the wipe")

    again = site.start(site.driver("k9.example.com", "k9"), "k9")
    time.sleep(GRACE_SECONDS + 0.5)
    assert site.slice_uids(driver.name, "k9")
    site.cluster.run(again.stop(removes_sockets=False))  # killed
    site.until(lambda: not site.slice_uids(driver.name, "k9"), "the second wipe")


def test_a_restarted_kubelet_wipes_slices_and_prepares_again(site: Site) -> None:
    site.add_node("k10")
    driver = site.start(site.driver("k10.example.com", "k10"), "k10")
    site.claim("k10", driver.name)
    site.pod("k10", {"x": "k10"})
    before = site.runs("k10")
    prepared = dict(driver.state)
    slices = site.slice_uids(driver.name, "k10")
    assert slices

    site.annotate_node("k10", kubelet_restart="1")

    site.until(lambda: slices.isdisjoint(site.slice_uids(driver.name, "k10")), "the wipe")
    site.until(lambda: driver.calls == [("prepare", ["k10"])] * 2, "the second prepare")
    assert driver.state == prepared
    assert checkpointed(site, "k10") == {"k10": {before["metadata"]["uid"]}}
    after = site.runs("k10")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    site.cluster.delete("Pod", "k10")
    site.gone("Pod", "k10")
    assert driver.state == {}


def test_an_init_container_uses_a_claim(site: Site) -> None:
    site.add_node("k11")
    driver = site.start(site.driver("k11.example.com", "k11"), "k11")
    site.claim("k11", driver.name)
    init = [{"name": "init", "image": "i", "resources": {"claims": [{"name": "x"}]}}]
    main = [{"name": "c", "image": "i"}]
    site.cluster.apply(pod_with_claims("k11", {"x": "k11"}, containers=main, initContainers=init))

    assert list(devices_of(site.runs("k11"))) == ["init"]


def test_a_completed_pod_releases_its_claims(site: Site) -> None:
    """A claim is unprepared before the pod's phase says that it has ended; one from a template is deleted."""
    site.add_node("k12")
    driver = site.start(site.driver("k12.example.com", "k12"), "k12")
    site.claim("k12", driver.name)
    site.cluster.apply(a_template("k12", driver.name))
    ends = {"allot.dev/run-seconds": "0"}
    claims = {"x": "k12", "y": "template:k12"}
    site.cluster.apply(pod_with_claims("k12", claims, annotations=ends, restartPolicy="Never"))

    site.cluster.wait_for_phase("k12", "Succeeded", seconds=60)

    assert driver.state == {}
    site.cluster.wait_for(
        "ResourceClaim", "k12", lambda claim: not (claim or {})["status"].get("reservedFor")
    )
    site.until(
        lambda: (
            [
                c["metadata"]["name"]
                for c in site.cluster.list("ResourceClaim", "default")
                if c["metadata"]["name"].startswith("k12")
            ]
            == ["k12"]
        ),
        "the generated claim to be deleted",
    )


def test_a_restarted_container_keeps_its_claim(site: Site) -> None:
    site.add_node("k13")
    driver = site.start(site.driver("k13.example.com", "k13"), "k13")
    site.claim("k13", driver.name)
    ends = {"allot.dev/run-seconds": "0", "allot.dev/exit-code": "1"}
    site.cluster.apply(pod_with_claims("k13", {"x": "k13"}, annotations=ends))

    def restarted(pod: Any) -> bool:
        statuses = (pod or {}).get("status", {}).get("containerStatuses", [{}])
        return bool(statuses[0].get("restartCount"))

    site.cluster.wait_for("Pod", "k13", restarted, seconds=60)
    assert driver.calls == [("prepare", ["k13"])]


def test_a_pod_waits_for_its_driver(site: Site) -> None:
    """Also if slices were published by someone else; a pod that has waited can be deleted."""
    site.add_node("k15")
    driver = site.driver("k15.example.com", "k15")
    site.cluster.run(driver.publish("k15"))
    site.cluster.apply(device_class(driver.name, driver.name))
    for name in ("k15", "k15-deleted"):
        site.claim(name, driver.name)
        site.pod(name, {"x": name})

    assert site.failed_prepare("k15") == (
        "Failed to prepare dynamic resources: prepare dynamic resources: "
        "DRA driver k15.example.com is not registered"
    )
    site.failed_prepare("k15-deleted")
    site.cluster.delete("Pod", "k15-deleted")
    site.gone("Pod", "k15-deleted")
    site.start(driver, "k15")
    site.runs("k15")
    assert driver.calls == [("prepare", ["k15"])]


@pytest.mark.parametrize("name", ["k16.example.com", "k17." + "x" * 46 + ".example.com"])
def test_a_rolling_update(site: Site, name: str) -> None:
    node = name[:3]
    site.add_node(node)
    state: dict[str, str] = {}
    old = site.start(site.driver(name, node, instance="old", state=state), node)
    site.claim(f"{node}-a", old.name)
    site.pod(f"{node}-a", {"x": f"{node}-a"})
    site.runs(f"{node}-a")

    new = site.start(site.driver(name, node, instance="new", state=state), node)
    site.claim(f"{node}-b", old.name)
    site.pod(f"{node}-b", {"x": f"{node}-b"})
    site.runs(f"{node}-b")
    site.cluster.run(old.stop())
    site.cluster.delete("Pod", f"{node}-a")
    site.gone("Pod", f"{node}-a")

    assert old.calls == [("prepare", [f"{node}-a"])]
    assert new.calls == [("prepare", [f"{node}-b"]), ("unprepare", [f"{node}-a"])]
    time.sleep(GRACE_SECONDS + 0.5)
    assert site.slice_uids(name, node)


def test_after_a_failed_update_the_old_instance_serves(site: Site) -> None:
    site.add_node("k18")
    old = site.start(site.driver("k18.example.com", "k18", instance="old"), "k18")
    new = site.driver("k18.example.com", "k18", instance="new")
    site.cluster.run(new.start())
    site.until(lambda: new.statuses, "the new instance")
    site.cluster.run(new.stop(removes_sockets=False))
    site.claim("k18", old.name)
    site.pod("k18", {"x": "k18"})

    site.runs("k18")

    assert old.calls[-1] == ("prepare", ["k18"])


def test_slices_survive_a_short_gap(site: Site) -> None:
    site.add_node("k19")
    driver = site.start(site.driver("k19.example.com", "k19"), "k19")
    uids = site.slice_uids(driver.name, "k19")
    assert uids

    site.cluster.run(driver.stop())
    again = site.driver("k19.example.com", "k19")
    site.cluster.run(again.start())
    site.until(lambda: again.statuses, "the new driver")
    time.sleep(GRACE_SECONDS + 0.5)

    assert site.slice_uids(driver.name, "k19") == uids


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_claims_of_older_versions(site: Site, version: str) -> None:
    node = f"k20-{version}"
    site.add_node(node)
    driver = site.start(site.driver(f"{node}.example.com", node), node)
    exactly = {"deviceClassName": driver.name}
    simple = {"name": "r0", **exactly} if version == "v1beta1" else a_request("r0", driver.name)
    choice = {
        "name": "r1",
        "firstAvailable": [
            {"name": "many", **exactly, "count": 9},
            {"name": "one", **exactly},
        ],
    }
    site.cluster.apply(claim_of(node, version=version, requests=[simple, choice]))
    site.pod(node, {"x": node})

    shown = devices_of(site.runs(node))

    assert sorted(each.split("=")[0] for each in shown["c"]["env"]) == ["R0", "R1"]


@BARE
def test_drivers_with_different_versions(site: Site) -> None:
    site.add_node("k22")
    versions = {"old": [V1BETA1], "new": [V1], "both": [V1, V1BETA1]}
    drivers = [
        site.start(site.driver(f"k22-{name}.example.com", "k22", versions=offered), "k22")
        for name, offered in versions.items()
    ]
    site.claim("k22", *(driver.name for driver in drivers))
    site.pod("k22", {"x": "k22"})

    site.runs("k22")

    assert [driver.calls for driver in drivers] == [[("prepare", ["k22"])]] * 3


@BARE
@pytest.mark.parametrize(
    ("versions", "refusal"),
    [
        pytest.param(["v9.DRAPlugin"], "none of its versions", id="unknown"),
        pytest.param([], "none of its versions", id="none"),
    ],
)
def test_a_driver_that_cannot_be_used_is_told_why(
    site: Site, versions: list[str], refusal: str
) -> None:
    node = f"bad-{len(versions)}"
    site.add_node(node)
    driver = site.driver(f"{node}.example.com", node, versions=versions)
    site.cluster.run(driver.start())

    (is_registered, error), *_ = site.until(lambda: driver.statuses, "the refusal")

    assert not is_registered
    assert refusal in error


@BARE
def test_health_is_shown_in_the_pod(site: Site) -> None:
    site.add_node("k24")
    driver = site.start(site.driver("k24.example.com", "k24"), "k24", devices=1)
    site.claim("k24", driver.name)
    site.pod("k24", {"x": "k24"})
    site.runs("k24")

    def report(health: Any, message: str = "", seconds: int = 0) -> None:
        device = dra_health_pb2.DeviceIdentifier(pool_name="k24", device_name="dev-0")
        described = dra_health_pb2.DeviceHealth(
            device=device,
            health=health,
            message=message,
            health_check_timeout_seconds=seconds,
        )
        site.cluster.run(driver.reports.put([described]))

    def shows(health: str, message: str | None = None) -> Any:
        def holds(pod: Any) -> bool:
            statuses = pod["status"]["containerStatuses"][0].get("allocatedResourcesStatus", [])
            return any(
                status["name"] == "claim:x"
                and status["resources"][0]["health"] == health
                and status["resources"][0].get("message") == message
                for status in statuses
            )

        return site.cluster.wait_for("Pod", "k24", holds, seconds=60)

    shows("Unknown")
    report(dra_health_pb2.HEALTHY)
    shows("Healthy")
    report(dra_health_pb2.UNHEALTHY, "too hot")
    pod = shows("Unhealthy", "too hot")
    resource = pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0]
    assert resource["resourceID"].startswith("example.com/device=")
    report(dra_health_pb2.HEALTHY, seconds=1)
    shows("Healthy")
    shows("Unknown")


@BARE
def test_a_missing_cdi_device_keeps_the_container_from_being_created(site: Site) -> None:
    site.add_node("cdi")
    driver = site.start(site.driver("cdi.example.com", "cdi"), "cdi")
    driver.writes_specs = False
    site.claim("cdi", driver.name)
    site.pod("cdi", {"x": "cdi"})

    def waits(pod: Any) -> bool:
        statuses = pod["status"].get("containerStatuses") or [{}]
        waiting = statuses[0].get("state", {}).get("waiting", {})
        return bool(waiting.get("reason") == "CreateContainerError")

    pod = site.cluster.wait_for("Pod", "cdi", waits, seconds=60)
    assert pod is not None
    message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert "CDI device injection failed: unresolvable CDI devices example.com/device=" in message
    assert site.until(lambda: site.events("cdi", "Failed"), "the event")


def test_an_offline_node_comes_back_with_its_claims(site: Site) -> None:
    site.add_node("off")
    driver = site.start(site.driver("off.example.com", "off"), "off")
    site.claim("off", driver.name)
    site.pod("off", {"x": "off"})
    uid = site.runs("off")["metadata"]["uid"]

    site.annotate_node("off", offline="true")
    site.cluster.run(force_delete(site, "off"))
    site.gone("Pod", "off")
    time.sleep(0.5)
    assert driver.calls == [("prepare", ["off"])]
    assert checkpointed(site, "off") == {"off": {uid}}
    site.annotate_node("off", offline="false")

    site.until(lambda: ("unprepare", ["off"]) in driver.calls, "unprepare")
    site.until(lambda: checkpointed(site, "off") == {}, "the checkpoint")


MOMENTS = int(os.environ.get("ALLOT_DRIVER_RESTARTS", "10"))


@pytest.mark.parametrize("seed", [1, 2])
def test_either_side_restarts_at_any_moment(site: Site, seed: int) -> None:
    """Prepared state is neither lost nor doubled. The driver keeps its state, as on a disk."""
    chance = random.Random(seed)  # noqa: S311 - the same moments in every run
    node = f"seed{seed}"
    site.add_node(node)
    state: dict[str, str] = {}
    driver = site.start(site.driver(f"{node}.example.com", node, state=state), node)
    site.cluster.apply(a_template(node, driver.name))
    living: list[str] = []
    for moment in range(MOMENTS):
        if len(living) < 4:
            living.append(f"{node}-{moment}")
            site.cluster.apply(pod_with_claims(living[-1], {"x": f"template:{node}"}))
        if len(living) > 1 and chance.random() < 0.5:
            name = living.pop(chance.randrange(len(living)))
            if chance.random() < 0.5:
                site.cluster.run(force_delete(site, name))
            else:
                site.cluster.delete("Pod", name)
        time.sleep(chance.uniform(0.0, 0.3))
        if chance.random() < 0.5:
            site.annotate_node(node, kubelet_restart=str(moment))
        else:
            site.cluster.run(driver.stop(removes_sockets=chance.random() < 0.5))
            driver = site.driver(driver.name, node, state=state)
            site.cluster.run(driver.start())
        with contextlib.suppress(RefusedError):  # wiped meanwhile
            site.cluster.run(driver.publish(node))

    def run() -> bool:
        with contextlib.suppress(RefusedError):  # wiped meanwhile
            site.cluster.run(driver.publish(node))
        pods = [site.cluster.get("Pod", name) for name in living]
        return all(pod is not None and pod["status"]["phase"] == "Running" for pod in pods)

    site.until(run, "all pods to run")
    _agree(site, driver, node, len(living))
    for name in living:
        site.cluster.delete("Pod", name)
        site.gone("Pod", name)
    _agree(site, driver, node, 0)


def _agree(site: Site, driver: Any, node: str, claims: int) -> None:
    site.until(
        lambda: set(checkpointed(site, node)) == set(driver.state.values()), "the same claims"
    )
    site.until(lambda: len(driver.state) == claims, f"{claims} claims, not {driver.state}")
    site.until(lambda: len(list(site.paths(node).cdi.iterdir())) == claims, "the same files")

    def numbers() -> list[tuple[int, int]]:
        """The devices and pods of each claim in the checkpoint."""
        infos = Checkpoint(site.paths(node).checkpoint).load()
        return [(len(info.devices_by_driver[driver.name]), len(info.pod_uids)) for info in infos]

    site.until(lambda: numbers() == [(1, 1)] * claims, "a device and a pod for each claim")
