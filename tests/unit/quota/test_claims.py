"""Quota of claims beyond the vectors: names in conflict, and claims that pods pay for themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from allot.api.base import replace
from allot.api.classes import DeviceClass
from allot.api.core import Pod
from allot.api.meta import OwnerReference
from allot.quota.claims import (
    ClaimEntries,
    claim_usage,
    extended_name_by_class,
    extended_resource_names,
)
from allot.testing.builders import DRIVER, a_claim, a_class

EXTENDED = "example.com/gpu"
COUNTED = f"requests.{EXTENDED}"


def an_extended_class(name: str, day: int | None = None) -> DeviceClass:
    created = datetime(2026, 1, day, tzinfo=UTC) if day else None
    return a_class(name, created=created, extended_resource_name=EXTENDED)


def test_the_newest_class_has_the_name() -> None:
    assert extended_resource_names([an_extended_class("a", 1), an_extended_class("b", 2)]) == {
        EXTENDED: "b"
    }
    assert extended_resource_names([an_extended_class("b", 1), an_extended_class("a", 1)]) == {
        EXTENDED: "a"
    }


def test_a_claim_made_for_a_pod_is_not_counted_twice() -> None:
    pod = Pod(
        {
            "metadata": {"name": "p", "uid": "u"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {EXTENDED: "1"}}}],
                "initContainers": [{"name": "i", "resources": {"requests": {EXTENDED: "1"}}}],
            },
        }
    )
    plain = a_claim()
    owner = OwnerReference("v1", "Pod", "p", "u", controller=True)
    made = replace(
        plain,
        metadata=replace(
            plain.metadata,
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
            owner_references=(owner,),
        ),
    )
    names = extended_name_by_class([an_extended_class(DRIVER)])

    assert claim_usage(plain, names, pod=pod)[COUNTED] == 1
    assert COUNTED not in claim_usage(made, names, pod=pod)
    assert COUNTED not in claim_usage(plain, names, extended_resources=False)


def test_entries_of_extended_resources_need_the_gate() -> None:
    always = [
        "count/resourceclaims.resource.k8s.io",
        f"{DRIVER}.deviceclass.resource.k8s.io/devices",
    ]
    extended = [COUNTED, f"requests.deviceclass.resource.kubernetes.io/{DRIVER}"]
    classes = [an_extended_class(DRIVER)]

    assert ClaimEntries(classes).among([*always, *extended]) == [*always, *extended]
    assert ClaimEntries(classes, extended_resources=False).among([*always, *extended]) == always
