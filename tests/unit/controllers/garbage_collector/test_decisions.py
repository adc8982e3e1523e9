"""What happens to an object, by the state of its owners."""

from __future__ import annotations

import pytest

from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.client.discovery import ServedKind
from allot.client.metadata import Metadata, MetadataObject
from allot.controllers.garbage_collector.decisions import (
    KEEP,
    CollectionDecision,
    DropReferences,
    OwnerState,
    Released,
    Remove,
    WaitsFor,
    decide,
    progress_of,
    without_blocking,
    without_finalizer,
    without_owners,
)
from allot.controllers.garbage_collector.graph import GraphNode

SOLID, WAITING, ABSENT = OwnerState.SOLID, OwnerState.WAITING, OwnerState.DANGLING
KIND = ServedKind("", "v1", "configmaps", "ConfigMap", True, frozenset())


def an_object(owners: str = "", finalizers: tuple[str, ...] = ()) -> MetadataObject:
    refs = tuple(OwnerReference("v1", "ConfigMap", uid, uid) for uid in owners)
    return MetadataObject(
        Metadata("d", "ns", "d", "7", finalizers=finalizers, owner_references=refs)
    )


def a_graph_node(uid: str, *, blocks: str = "", waits: bool = False) -> GraphNode:
    refs = tuple(
        OwnerReference("v1", "ConfigMap", owner, owner, block_owner_deletion=True)
        for owner in blocks
    )
    return GraphNode(KIND, ObjectKey("ns", uid), uid, refs, waits, waits)


@pytest.mark.parametrize(
    ("states", "dependents", "finalizers", "verdict"),
    [
        pytest.param({}, [], (), KEEP, id="never-owned"),
        pytest.param({"a": SOLID}, [], (), KEEP, id="owned"),
        pytest.param({"a": ABSENT}, [], (), Remove("Background"), id="last-owner-gone"),
        pytest.param({"a": ABSENT}, [], ("orphan",), Remove("Orphan"), id="wants-orphans"),
        pytest.param(
            {"a": ABSENT}, [], ("foregroundDeletion",), Remove("Foreground"), id="wants-foreground"
        ),
        pytest.param(
            {"a": SOLID, "b": ABSENT, "c": WAITING},
            [],
            (),
            DropReferences(frozenset("bc")),
            id="one-of-three-stays",
        ),
        pytest.param({"a": WAITING}, [], (), Remove("Background"), id="waited-for-without-own"),
        pytest.param(
            {"a": WAITING, "b": ABSENT},
            [a_graph_node("e")],
            (),
            Remove("Foreground"),
            id="waited-for",
        ),
        pytest.param(
            {"a": WAITING},
            [a_graph_node("a", blocks="d", waits=True)],
            (),
            Remove("Foreground", unblocks_owners=True),
            id="circle",
        ),
    ],
)
def test_judgement(
    states: dict[str, OwnerState],
    dependents: list[GraphNode],
    finalizers: tuple[str, ...],
    verdict: CollectionDecision,
) -> None:
    assert decide(an_object("".join(states), finalizers), states, dependents) == verdict


def test_progress_of_the_foreground() -> None:
    assert progress_of("a", [a_graph_node("b"), a_graph_node("c", blocks="x")]) == Released()
    busy = [a_graph_node("b", blocks="a"), a_graph_node("c", blocks="a", waits=True)]
    assert progress_of("a", busy) == WaitsFor(frozenset("b"))


def test_patches_are_for_this_version_only() -> None:
    obj = an_object("ab", ("orphan", "x.dev/y"))
    same = {"uid": "d", "resourceVersion": "7"}
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "b"}

    assert without_owners(obj, frozenset("a")) == {"metadata": {**same, "ownerReferences": [ref]}}
    assert without_owners(obj, frozenset("ab")) == {"metadata": {**same, "ownerReferences": None}}
    assert without_finalizer(obj, "orphan") == {"metadata": {**same, "finalizers": ["x.dev/y"]}}
    (_, second) = without_blocking(obj)["metadata"]["ownerReferences"]
    assert second == {**ref, "blockOwnerDeletion": False}
