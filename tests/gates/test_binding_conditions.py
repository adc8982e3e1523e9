"""KEP-5007: `DRADeviceBindingConditions` is switched off and on."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot.api.raw import RawObject
from allot.features import BINDING_CONDITIONS, DEVICE_STATUS, GRANULAR_STATUS_AUTHORIZATION
from allot.rules import RuleSet
from allot.testing.cluster import AllotCluster
from allot.testing.manifests import a_device_manifest
from tests.gates.story import (
    DRIVER,
    RESOURCES,
    SECONDS,
    Json,
    Off,
    Story,
    a_cluster,
    exactly,
    name_of,
    selector,
)

DISABLED = "DRADeviceBindingConditions"
FIELDS = ("bindsToNode", "bindingConditions", "bindingFailureConditions")


def device_of(name: str, kind: str, *, is_ready: bool = False) -> Json:
    if is_ready:
        return a_device_manifest(name, {"kind": kind})
    return a_device_manifest(
        name,
        {"kind": kind},
        binding_conditions=["Attached"],
        binding_failure_conditions=["Broken"],
    )


def asking(kind: str) -> Json:
    return exactly(selectors=selector(f'device.attributes["{DRIVER}"].kind == "{kind}"'))


def attach(story: Story, claim: str) -> None:
    """What the controller of the device does."""
    result = story.allocated(claim)
    found = story.stored("ResourceClaim", claim)
    entry = {name: result[name] for name in ("driver", "pool", "device")}
    condition = {
        "type": "Attached",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    found["status"]["devices"] = [{**entry, "conditions": [condition]}]
    client = story.cluster.client
    story.cluster.run(client.update_status(RESOURCES["ResourceClaim"], RawObject(found)))


def waits(story: Story, pod: str) -> None:
    """Wait until a pod waits in PreBind for its device."""
    story.event(pod, "BindingConditionsPending", "Attached")
    found = story.cluster.wait_for(
        "Pod",
        pod,
        lambda obj: obj is not None and obj["status"].get("nominatedNodeName"),
        seconds=SECONDS,
    )
    assert found is not None
    assert "nodeName" not in found["spec"]
    assert story.allocated(pod)["bindingConditions"] == ["Attached"]
    story.audit()


@pytest.mark.parametrize("rules", RuleSet)
def test_a_server_that_drops_conditions(tmp_path: Path, rules: RuleSet) -> None:
    """v1.38 binds the pod at once; by our rule it gets a device that is ready, when one comes."""
    with a_cluster("memory", tmp_path, rules) as cluster:
        story = Story(cluster, BINDING_CONDITIONS)
        story.publish("fabric", device_of("gpu-0", "gpu"))
        story.switch(Off.SERVER)
        story.claim("claim", asking("gpu"))
        story.pod("pod", "claim")
        if rules is RuleSet.SEEDS:
            story.event("pod", "FailedScheduling", "gpu-0", DISABLED, "disabled in the API server")
            story.is_pending("pod", "gpu-0: could not be bound for this pod")
            story.publish("more", device_of("gpu-1", "gpu", is_ready=True))
        story.runs("pod")
        expected = "gpu-1" if rules is RuleSet.SEEDS else "gpu-0"
        assert story.allocated("claim")["device"] == expected


def test_on_off_on(cluster: AllotCluster, off: Off) -> None:
    story = Story(cluster, BINDING_CONDITIONS)
    story.publish("fabric", *(device_of(f"gpu-{number}", "gpu") for number in range(3)))
    story.publish("fpgas", device_of("fpga-0", "fpga"))
    story.publish("plain", device_of("plain-0", "plain", is_ready=True))
    for name in ("running", "leaving", "waiting"):
        story.claim(name, asking("gpu"))
        story.pod(name)
        waits(story, name)
    for name in ("running", "leaving"):
        attach(story, name)
        story.runs(name)
    story.claim("pending", asking("new"))
    story.pod("pending")
    story.is_pending("pending", "new")

    story.switch(off)
    story.touch("ResourceSlice", "fabric")
    for claim in ("running", "waiting"):
        story.touch("ResourceClaim", claim)
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    story.remove("leaving")
    story.claim("plain", asking("plain"))
    story.pod("plain")
    story.runs("plain")
    (device,) = story.publish("new", device_of("new-0", "new"))["spec"]["devices"]
    assert [name in device for name in FIELDS] == 3 * [Off.SERVER not in off]
    story.claim("fresh", asking("fpga"))
    story.pod("fresh")

    left = {"waiting", "pending", "fresh"}
    if Off.SCHEDULER in off:
        # Pods that wait are released, and no pod gets a device that has to be made ready.
        story.released("waiting")
        for pod in ("waiting", "fresh"):
            story.is_pending(pod, DISABLED)
    else:
        waits(story, "waiting")
        attach(story, "waiting")
        story.runs("waiting")
        left.remove("waiting")
        if Off.SERVER in off:
            # The server drops the conditions of a new allocation: the pod would not wait for its device.
            story.event("fresh", "FailedScheduling", "fpga-0", DISABLED, "API server")
            story.is_pending("fresh", "fpga-0")
            story.released("fresh")
        else:
            waits(story, "fresh")
    if Off.SERVER in off:  # the new slice has lost its conditions, and the device is like others
        story.runs("pending")
        left.remove("pending")
    elif Off.SCHEDULER in off:
        story.is_pending("pending", DISABLED)
    else:
        waits(story, "pending")

    story.switch(Off.NOTHING)
    for pod in sorted(left):
        waits(story, pod)
        attach(story, pod)
        story.runs(pod)
    story.publish("last", device_of("last-0", "last"))
    story.claim("last", asking("last"))
    story.pod("last")
    waits(story, "last")
    attach(story, "last")
    story.runs("last")
    story.remove("running", "second-consumer")
    story.remove("plain")


@pytest.mark.parametrize("off", [Off.ALL, Off.SERVER, Off.SCHEDULER], ids=name_of)
@pytest.mark.parametrize("storage", ["rolling"])
def test_device_status_off_and_on(cluster: AllotCluster, off: Off) -> None:
    """Without `DRAResourceClaimDeviceStatus` no controller can say that a device is ready."""
    story = Story(cluster, BINDING_CONDITIONS, DEVICE_STATUS, GRANULAR_STATUS_AUTHORIZATION)
    story.publish("fabric", *(device_of(f"gpu-{number}", "gpu") for number in range(2)))
    for name in ("running", "waiting"):
        story.claim(name, asking("gpu"))
        story.pod(name)
        waits(story, name)
    attach(story, "running")
    story.runs("running")
    reported = story.stored("ResourceClaim", "running")["status"]["devices"]

    story.switch(off)
    story.touch("ResourceSlice", "fabric")
    story.touch("ResourceClaim", "running")
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    assert story.stored("ResourceClaim", "running")["status"]["devices"] == reported
    if Off.SCHEDULER in off:
        story.released("waiting")
        story.is_pending("waiting", DISABLED)
    else:
        attach(story, "waiting")
        assert "devices" not in story.stored("ResourceClaim", "waiting")["status"]
        waits(story, "waiting")

    story.switch(Off.NOTHING)
    waits(story, "waiting")
    attach(story, "waiting")
    story.runs("waiting")
    assert story.stored("ResourceClaim", "running")["status"]["devices"] == reported
