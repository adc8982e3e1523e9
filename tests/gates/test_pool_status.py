"""KEP-5677: `DRAResourcePoolStatus` is switched off and on."""

from __future__ import annotations

import pytest

from allot.client.apply import UnknownKindError
from allot.features import RESOURCE_POOL_STATUS
from allot.testing.cluster import AllotCluster
from tests.gates.story import DRIVER, SECONDS, Json, Off, Story, exactly

KIND = "ResourcePoolStatusRequest"
VERSIONS = ("v1alpha1", "v1alpha3")


def ask(story: Story, name: str, version: str = "v1alpha3") -> None:
    story.cluster.apply(
        {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": KIND,
            "metadata": {"name": name},
            "spec": {"driver": DRIVER},
        }
    )


def answered(story: Story, name: str) -> Json:
    """Wait for an answer; the status."""

    def is_complete(found: Json | None) -> bool:
        conditions = ((found or {}).get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)

    found = story.cluster.wait_for(KIND, name, is_complete, seconds=SECONDS)
    assert found is not None
    return dict(found["status"])


def test_on_off_on(cluster: AllotCluster, off: Off) -> None:
    story = Story(cluster, RESOURCE_POOL_STATUS)
    story.publish("pool", *({"name": f"device-{number}"} for number in range(4)))
    story.claim("running", exactly())
    story.pod("running")
    story.runs("running")
    ask(story, "first")
    first = answered(story, "first")
    assert first["pools"][0]["allocatedDevices"] == 1
    story.switch(Off.CONTROLLERS)
    ask(story, "unanswered")

    story.switch(off)
    story.claim("plain", exactly())
    story.pod("plain")
    story.runs("plain")
    story.pod("second-consumer", "running")
    story.runs("second-consumer")
    if Off.SERVER in off:
        for version in VERSIONS:
            with pytest.raises(UnknownKindError):
                ask(story, "second", version)
        with pytest.raises(LookupError):
            cluster.get(KIND, "first")
    else:
        ask(story, "second")
        assert story.stored(KIND, "first")["status"] == first
        if Off.CONTROLLERS in off:
            for name in ("unanswered", "second"):
                assert not story.stored(KIND, name).get("status")
        else:
            answered(story, "unanswered")
            answered(story, "second")

    story.switch(Off.NOTHING)
    assert story.stored(KIND, "first")["status"] == first
    assert answered(story, "unanswered")["pools"][0]["totalDevices"] == 4
    ask(story, "last")
    assert answered(story, "last")["pools"][0]["allocatedDevices"] == 2
    story.remove("running", "second-consumer")
    story.remove("plain")
