"""KEP-4816: `DRAPrioritizedList` is switched off and on."""

from __future__ import annotations

from allot.features import PRIORITIZED_LIST
from allot.testing.cluster import AllotCluster
from allot.testing.manifests import a_device_manifest
from tests.gates.story import CLASS, DRIVER, Json, Off, Story, exactly, refused, selector

DISABLED = "has subrequests, but the DRAPrioritizedList feature is disabled"


def device_of(name: str, kind: str) -> Json:
    return a_device_manifest(name, {"kind": kind})


def first_available(*kinds: str) -> Json:
    """A request for a device of the first kind, or else of the next."""
    return {
        "name": "r",
        "firstAvailable": [
            {
                "name": kind,
                "deviceClassName": CLASS,
                "selectors": selector(f'device.attributes["{DRIVER}"].kind == "{kind}"'),
            }
            for kind in kinds
        ],
    }


def test_on_off_on(cluster: AllotCluster, off: Off) -> None:
    story = Story(cluster, PRIORITIZED_LIST)
    story.publish("pool", *(device_of(f"old-{number}", "old") for number in range(8)))
    story.claim("running", first_available("new", "old"))
    story.pod("running")
    story.runs("running")
    assert story.allocated("running")["request"] == "r/old"
    story.template("template", first_available("new", "old"))
    story.pod("leaving", template="template")
    story.runs("leaving")
    story.claim("pending", first_available("newest", "newer"))
    story.pod("pending")
    story.is_pending("pending", "newest")

    story.switch(off)
    for kind, name in (("ResourceClaim", "running"), ("ResourceClaimTemplate", "template")):
        story.touch(kind, name)
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    story.remove("leaving")
    story.claim("plain", exactly())
    story.pod("plain")
    story.runs("plain")

    if Off.SERVER in off:
        with refused("exactly one of"):
            story.claim("new", first_available("new", "old"))
        with refused("exactly one of"):
            story.template("new-template", first_available("new", "old"))
    else:
        story.claim("new", first_available("new", "old"))
        story.template("new-template", first_available("new", "old"))
        story.pod("new")
        if Off.SCHEDULER in off:
            story.is_pending("new", DISABLED)
        else:
            story.runs("new")

    story.publish("better", device_of("newer-0", "newer"))
    if Off.SCHEDULER in off:
        story.is_pending("pending", DISABLED)
    else:
        story.runs("pending")

    story.pod("from-template", template="template")
    if Off.CONTROLLERS in off:
        story.event("from-template", "FailedResourceClaimCreation", "prioritized list", "disabled")
    elif Off.SERVER in off:
        story.event("from-template", "FailedResourceClaimCreation", "exactly one of")
    elif Off.SCHEDULER in off:
        story.is_pending("from-template", DISABLED)
    else:
        story.runs("from-template")

    story.switch(Off.NOTHING)
    for pod in ("pending", "from-template"):
        story.runs(pod)
    assert story.allocated("pending")["request"] == "r/newer"
    assert story.allocated(story.claim_of("from-template"))["request"] == "r/old"
    story.claim("last", first_available("new", "old"))
    story.pod("last")
    story.runs("last")
    story.remove("running", "second-consumer")
    story.remove("plain")
