"""KEP-5075: `DRAConsumableCapacity` is switched off and on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from allot.features import CONSUMABLE_CAPACITY
from allot.rules import RuleSet
from allot.testing.cluster import AllotCluster
from tests.gates.story import DRIVER, Json, Off, Story, a_cluster, exactly, refused, selector

DISABLED = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
POLICY = {"default": "1G", "validRange": {"min": "1G", "step": "1G"}}


def a_nic(name: str, kind: str = "nic") -> Json:
    """Ten gigabits to share."""
    return {
        "name": name,
        "attributes": {"kind": {"string": kind}},
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": "10G", "requestPolicy": POLICY}},
    }


def asking(bandwidth: str = "", kind: str = "nic") -> Json:
    rest: dict[str, Any] = {"capacity": {"requests": {"bandwidth": bandwidth}}} if bandwidth else {}
    chosen = selector(f'device.attributes["{DRIVER}"].kind == "{kind}"')
    return exactly(selectors=chosen, **rest)


def shared_by_expression() -> Json:
    """Any device of this kind that may be shared."""
    kind = f'device.attributes["{DRIVER}"].kind == "nic"'
    return exactly(selectors=selector(f"device.allowMultipleAllocations == true && {kind}"))


def test_on_off_on(cluster: AllotCluster, off: Off) -> None:
    """The story that the KEP tells: 5 of 10 gigabits are held when the gate is switched off."""
    story = Story(cluster, CONSUMABLE_CAPACITY)
    story.publish("nics", a_nic("nic-0"))
    plain = {"name": "plain-0", "attributes": {"kind": {"string": "plain"}}}
    story.publish("plain", plain)
    story.claim("running", asking("5G"))
    story.pod("running")
    story.runs("running")
    held = story.allocated("running")
    assert held["shareID"]
    assert held["consumedCapacity"] == {"bandwidth": "5G"}
    story.template("template", asking("1G"))
    story.pod("leaving", template="template")
    story.runs("leaving")
    story.publish("free", a_nic("nic-2", "free"))
    story.claim("by-expression", shared_by_expression())
    story.claim("two", asking("2G"))
    story.claim("eight", asking("8G"))
    story.pod("eight")
    story.is_pending("eight", "bandwidth")

    story.switch(off)
    for kind, name in (
        ("ResourceSlice", "nics"),
        ("ResourceClaim", "running"),
        ("ResourceClaim", "two"),
        ("ResourceClaim", "by-expression"),
        ("ResourceClaimTemplate", "template"),
    ):
        story.touch(kind, name)
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    story.remove("leaving")
    story.claim("plain", asking(kind="plain"))
    story.pod("plain")
    story.runs("plain")

    story.pod("two")
    if Off.SCHEDULER in off:
        story.is_pending("two", DISABLED)
        story.is_pending("eight", DISABLED)
    else:
        story.runs("two")
        assert story.allocated("two")["consumedCapacity"] == {"bandwidth": "2G"}
        story.is_pending("eight", "bandwidth")
    keeps = Off.SERVER not in off
    created = story.claim("new", asking("1G"))["spec"]["devices"]["requests"][0]["exactly"]
    assert ("capacity" in created) is keeps
    subrequest = {"name": "a", **asking("1G")["exactly"]}
    created = story.claim("list", {"name": "r", "firstAvailable": [subrequest]})
    (subrequest,) = created["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert ("capacity" in subrequest) is keeps
    made = story.template("new-template", asking("1G"))["spec"]["spec"]["devices"]["requests"][0]
    assert ("capacity" in made["exactly"]) is keeps
    (device,) = story.publish("new", a_nic("nic-1", "new"))["spec"]["devices"]
    assert ("allowMultipleAllocations" in device) is keeps
    assert ("requestPolicy" in device["capacity"]["bandwidth"]) is keeps
    distinct: Json = {"requests": ["r"], "distinctAttribute": f"{DRIVER}/kind"}
    if keeps:
        story.claim("distinct", asking("1G"), constraints=(distinct,))
    else:
        with refused("matchAttribute"):
            story.claim("distinct", asking("1G"), constraints=(distinct,))
        with refused("allowMultipleAllocations"):
            story.claim("by-new-expression", shared_by_expression())

    # Without the feature on either side a device that may be shared is given away as a whole.
    story.claim("free", asking(kind="free"))
    story.pod("free")
    story.runs("free")
    is_share = not off & (Off.SCHEDULER | Off.SERVER)
    assert ("shareID" in story.allocated("free")) is is_share

    # A share is in the way of a claim for the whole device, and no claim gets a second share.
    story.claim("whole", asking())
    story.pod("whole")
    story.pod("from-template", template="template")
    if off & (Off.SCHEDULER | Off.SERVER):
        story.is_pending("whole", "nic-0")
        story.is_pending("from-template", "nic-0" if Off.SERVER in off else DISABLED)
    else:
        story.runs("whole")
        story.runs("from-template")

    story.switch(Off.NOTHING)
    story.runs("two")
    story.is_pending("eight", "bandwidth")
    assert story.allocated("running") == held
    for pod in ("whole", "from-template"):
        story.runs(pod)
    story.claim("last", asking("1G"))
    story.pod("last")
    story.runs("last")
    assert story.allocated("last")["consumedCapacity"] == {"bandwidth": "1G"}
    story.claim("beside", asking("1G", kind="free"))
    story.pod("beside")
    if not is_share:
        story.is_pending("beside", "nic-2", "default/free")
        story.remove("free")
    story.runs("beside")
    story.remove("running", "second-consumer")
    story.remove("plain")
    story.pod("by-expression")
    story.runs("by-expression")


@pytest.mark.parametrize("rules", RuleSet)
def test_a_server_that_refuses_a_share(tmp_path: Path, rules: RuleSet) -> None:
    """The scheduler gives a share, the server makes it the whole device, of which others hold shares."""
    with a_cluster("memory", tmp_path, rules) as cluster:
        story = Story(cluster, CONSUMABLE_CAPACITY)
        story.publish("nics", a_nic("nic-0"))
        story.claim("running", asking("5G"))
        story.pod("running")
        story.runs("running")
        story.switch(Off.SERVER)
        story.claim("claim", asking())
        story.pod("pod", "claim")
        held = 'nic-0 is already allocated in shares to claim "default/running"'
        story.event("pod", "FailedScheduling", held)
        story.publish("more", {**a_nic("nic-1"), "allowMultipleAllocations": False})
        if rules is RuleSet.SEEDS:
            story.runs("pod")
            assert story.allocated("claim")["device"] == "nic-1"
        else:
            story.is_pending("pod", held)
