"""KEP-6080: `DRADerivedAttributes` is switched off and on."""

from __future__ import annotations

from allot.features import DERIVED_ATTRIBUTES
from allot.testing.cluster import AllotCluster
from allot.testing.manifests import a_device_manifest
from tests.gates.story import DRIVER, Json, Off, Story, allocation_of, exactly, refused, selector

QUALIFIED = f"{DRIVER}/rack"


def device_at(name: str, kind: str, place: str, rack: str) -> Json:
    return a_device_manifest(name, {"kind": kind, "place": place, "rack": rack})


def deriving(attribute: str) -> tuple[Json, Json]:
    """A GPU and a NIC: requests that derive an attribute from the beginning of the place."""
    place = f'device.attributes["{DRIVER}"].place'
    derived = [{"name": attribute, "expression": f'{place}.split("-")[0]'}]
    gpu, nic = (
        exactly(
            kind,
            selectors=selector(f'device.attributes["{DRIVER}"].kind == "{kind}"'),
            derivedAttributes=derived,
        )
        for kind in ("gpu", "nic")
    )
    return gpu, nic


def matching(attribute: str) -> tuple[Json]:
    return ({"requests": ["gpu", "nic"], "matchAttribute": attribute},)


def devices_of(story: Story, claim: str) -> set[str]:
    allocation = allocation_of(story.stored("ResourceClaim", claim))
    return {result["device"] for result in allocation["devices"]["results"]}


def test_on_off_on(cluster: AllotCluster, off: Off) -> None:
    story = Story(cluster, DERIVED_ATTRIBUTES)
    for number in range(6):
        # By place the NIC has the GPU's number, by rack that of the next GPU.
        story.publish(
            f"pool-{number}",
            device_at(f"gpu-{number}", "gpu", f"numa{number}-a", f"rack{number}"),
            device_at(f"nic-{number}", "nic", f"numa{number}-b", f"rack{(number + 1) % 6}"),
        )
    story.claim("running", *deriving("numa"), constraints=matching("numa"))
    story.pod("running")
    story.runs("running")
    assert devices_of(story, "running") == {"gpu-0", "nic-0"}
    story.template("template", *deriving("numa"), constraints=matching("numa"))
    story.pod("leaving", template="template")
    story.runs("leaving")
    story.claim("bare", *deriving("numa"), constraints=matching("numa"))
    story.claim("qualified", *deriving(QUALIFIED), constraints=matching(QUALIFIED))
    never = exactly("never", selectors=selector("false"))
    story.claim("pending", *deriving("numa"), never, constraints=matching("numa"))
    story.pod("pending")
    story.is_pending("pending", "never")

    story.switch(off)
    for name in ("running", "bare", "qualified"):
        story.touch("ResourceClaim", name)
    story.touch("ResourceClaimTemplate", "template")
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    story.remove("leaving")

    if Off.SERVER in off:
        with refused("derivedAttributes", "Forbidden", DERIVED_ATTRIBUTES):
            story.claim("new", *deriving("numa"), constraints=matching("numa"))
        with refused("matchAttribute", "numa"):
            story.claim("new", exactly("gpu"), exactly("nic"), constraints=matching("numa"))
        with refused("derivedAttributes", "Forbidden", DERIVED_ATTRIBUTES):
            story.template("new", *deriving("numa"), constraints=matching("numa"))
    else:
        story.claim("new", *deriving("numa"), constraints=matching("numa"))
        story.template("new", *deriving("numa"), constraints=matching("numa"))

    story.pod("bare")
    if Off.SCHEDULER in off:
        story.event("bare", "DerivedAttributesDisabled", "numa", DERIVED_ATTRIBUTES)
        story.is_pending("bare", "numa")
        story.is_pending("pending", "never")
    else:
        story.runs("bare")
    story.pod("qualified")
    if Off.SCHEDULER in off:  # by the static attribute
        story.event("qualified", "DerivedAttributesDisabled", QUALIFIED, DERIVED_ATTRIBUTES)
    story.runs("qualified")
    gpu, nic = sorted(devices_of(story, "qualified"))
    assert (gpu[-1] == nic[-1]) is (Off.SCHEDULER not in off)

    story.pod("from-template", template="template")
    if Off.SERVER in off:
        story.event("from-template", "FailedResourceClaimCreation", DERIVED_ATTRIBUTES)
    elif Off.SCHEDULER in off:
        story.is_pending("from-template", "numa")
    else:
        story.runs("from-template")

    story.switch(Off.NOTHING)
    story.runs("bare")
    gpu, nic = sorted(devices_of(story, "bare"))
    assert gpu[-1] == nic[-1]
    if Off.SCHEDULER not in off:
        story.runs("from-template")
    story.claim("last", *deriving("numa"), constraints=matching("numa"))
    story.remove("running", "second-consumer")
    story.remove("qualified")
    story.template("last", *deriving("numa"), constraints=matching("numa"))
    story.is_pending("pending", "never")
