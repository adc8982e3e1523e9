"""What a terminating namespace says about itself."""

from __future__ import annotations

from collections import Counter

from allot.controllers.namespaces.conditions import DeletionProgress, with_deletion_conditions

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_all_is_well() -> None:
    told = with_deletion_conditions([], DeletionProgress(), NOW)

    assert [(each["type"], each["status"], each["reason"]) for each in told] == [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions"),
        ("NamespaceDeletionContentFailure", "False", "ContentDeleted"),
        ("NamespaceContentRemaining", "False", "ContentRemoved"),
        ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers"),
    ]
    assert with_deletion_conditions(told, DeletionProgress(), THEN) == told


def test_what_is_left_is_counted() -> None:
    progress = DeletionProgress(
        content_failures=["pods: no"],
        remaining=Counter({"pods": 2, "jobs.batch": 1}),
        finalizers=Counter({"x.dev/y": 3}),
    )
    others = {"type": "Other", "status": "True"}
    before = with_deletion_conditions([others], DeletionProgress(), THEN)

    told = {each["type"]: each for each in with_deletion_conditions(before, progress, NOW)}

    assert told["Other"] == others
    left = told["NamespaceContentRemaining"]
    assert left["message"] == (
        "Some resources are remaining: jobs.batch. has 1 resource instances, "
        "pods. has 2 resource instances"
    )
    assert (left["status"], left["reason"]) == ("True", "SomeResourcesRemain")
    assert left["lastTransitionTime"] == NOW
    assert told["NamespaceDeletionContentFailure"]["message"] == "pods: no"
    assert told["NamespaceDeletionDiscoveryFailure"]["lastTransitionTime"] == THEN
    assert not progress.is_empty


def test_other_words_are_no_transition() -> None:
    first = with_deletion_conditions([], DeletionProgress(remaining=Counter({"pods": 2})), THEN)

    (left,) = (
        each
        for each in with_deletion_conditions(
            first, DeletionProgress(remaining=Counter({"pods": 1})), NOW
        )
        if each["type"] == "NamespaceContentRemaining"
    )

    assert left["message"].endswith("pods. has 1 resource instances")
    assert left["lastTransitionTime"] == THEN


def test_empty_means_certain() -> None:
    assert DeletionProgress().is_empty
    assert not DeletionProgress(discovery_failure="no answer").is_empty
