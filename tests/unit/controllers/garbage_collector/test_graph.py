"""The owner graph against a model: all objects in a dictionary, looked through from the beginning each time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from allot.api.identities import ObjectKey
from allot.api.meta import OwnerReference
from allot.api.raw import RawObject
from allot.client.discovery import ServedKind
from allot.client.metadata import Metadata, MetadataObject, is_same_ownership
from allot.client.resources import RESOURCE_CLAIMS
from allot.controllers.garbage_collector.graph import (
    FOREGROUND,
    ORPHAN,
    GraphNode,
    OwnerGraph,
    is_same_in_graph,
)

CONFIG_MAPS = ServedKind("", "v1", "configmaps", "ConfigMap", True, frozenset())
NODES = ServedKind("", "v1", "nodes", "Node", False, frozenset())
KIND_BY_UID = {"a": CONFIG_MAPS, "b": CONFIG_MAPS, "n": NODES, "x": CONFIG_MAPS}
UIDS = sorted(KIND_BY_UID)


def namespace_of(uid: str) -> str:
    return {"n": "", "x": "elsewhere"}.get(uid, "here")


@st.composite
def references(draw: st.DrawFn) -> OwnerReference:
    uid = draw(st.sampled_from(UIDS))
    name = draw(st.sampled_from([uid] * 7 + ["another"]))
    block = draw(st.sampled_from([True, None]))
    kind = KIND_BY_UID[uid].kind
    return OwnerReference("v1", kind, name, uid, block_owner_deletion=block)


@st.composite
def nodes(draw: st.DrawFn) -> GraphNode:
    uid = draw(st.sampled_from(UIDS))
    state = draw(st.sampled_from(["alive", "foreground", "alive", "orphan", "background"]))
    refs = draw(st.lists(references(), max_size=2, unique_by=lambda ref: ref.uid))
    return a_graph_node(uid, state, *refs)


def a_graph_node(uid: str, state: str = "alive", *refs: OwnerReference) -> GraphNode:
    return GraphNode(
        KIND_BY_UID[uid],
        ObjectKey(namespace_of(uid), uid),
        uid,
        refs,
        state != "alive",
        state == "foreground",
        state == "orphan",
    )


DEPENDENT = a_graph_node("b", "alive", OwnerReference("v1", "ConfigMap", "a", "a", None, True))


def is_due(uid: str, world: Mapping[str, GraphNode]) -> bool:
    """Whether the object is due: an owner is not as described, or nothing blocks it any more."""
    node = world.get(uid)
    if node is None:
        return False
    for ref in node.owners:
        owner = world.get(ref.uid)
        if owner is None or not owner.is_meant_by(ref, node) or owner.waits_for_dependents:
            return True
    return node.waits_for_dependents and not any(other.blocks(uid) for other in world.values())


@settings(max_examples=150)
@example([a_graph_node("a", "foreground"), DEPENDENT])
@example([DEPENDENT, a_graph_node("a", "foreground"), "b"])
@example([DEPENDENT, a_graph_node("a", "foreground"), a_graph_node("b")])
@example([DEPENDENT, a_graph_node("a", "foreground"), a_graph_node("a"), "a"])
@given(st.lists(st.one_of(nodes(), nodes(), st.sampled_from(UIDS)), min_size=1, max_size=8))
def test_changes_name_the_objects_that_become_due(changes: list[GraphNode | str]) -> None:
    graph, world = OwnerGraph(), dict[str, GraphNode]()
    for change in (*map(a_graph_node, UIDS), *changes):
        due_before = {uid for uid in UIDS if is_due(uid, world)}
        releasing = {uid for uid, node in world.items() if node.releases_dependents}
        if isinstance(change, GraphNode):
            world[change.uid] = change
            work = graph.put(change)
        else:
            world.pop(change, None)
            work = graph.drop(change)

        due = {uid for uid in UIDS if is_due(uid, world)}
        assert due - due_before <= work.attempt_to_delete
        assert work.attempt_to_delete <= world.keys()
        now_releasing = {uid for uid, node in world.items() if node.releases_dependents}
        assert work.attempt_to_orphan == now_releasing - releasing
        for uid in UIDS:
            assert graph.get(uid) == world.get(uid)
            dependents = {node.uid for node in graph.dependents(uid)}
            assert dependents == {
                node.uid for node in world.values() if any(ref.uid == uid for ref in node.owners)
            }


@given(st.lists(nodes(), max_size=6))
def test_nothing_is_left_of_what_is_gone(found: list[GraphNode]) -> None:
    graph = OwnerGraph()
    for node in found:
        graph.put(node)
    for uid in UIDS:
        graph.drop(uid)

    assert len(graph) == 0


def test_quiet_changes_give_no_work() -> None:
    graph = OwnerGraph()
    owner = GraphNode(CONFIG_MAPS, ObjectKey("here", "a"), "a")
    ref = OwnerReference("v1", "ConfigMap", "a", "a")
    dependent = GraphNode(CONFIG_MAPS, ObjectKey("here", "b"), "b", (ref,))

    work = [graph.put(owner), graph.put(dependent), graph.put(dependent), graph.put(owner)]

    assert not any(each.attempt_to_delete or each.attempt_to_orphan for each in work)


@st.composite
def versions(draw: st.DrawFn) -> MetadataObject:
    """Versions of one object."""
    ref = OwnerReference("v1", "ConfigMap", "a", "a")
    metadata = Metadata(
        "b",
        "here",
        "b",
        draw(st.sampled_from(["1", "2"])),
        draw(st.sampled_from([None, "2026-01-01T00:00:00Z"])),
        finalizers=draw(st.sampled_from([None, ("x.dev/y",), (FOREGROUND,), (ORPHAN,)])),
        owner_references=draw(st.sampled_from([None, (ref,)])),
    )
    return MetadataObject(metadata)


@given(versions(), versions())
def test_versions_that_count_as_the_same_have_the_same_node(
    old: MetadataObject, new: MetadataObject
) -> None:
    if is_same_in_graph(old, new):
        assert GraphNode.of(CONFIG_MAPS, old) == GraphNode.of(CONFIG_MAPS, new)
    elif not new.is_being_deleted:
        assert GraphNode.of(CONFIG_MAPS, old) != GraphNode.of(CONFIG_MAPS, new)


@given(versions(), versions())
def test_updates_that_the_graph_is_not_told_leave_it_as_it_is(
    old: MetadataObject, new: MetadataObject
) -> None:
    bodies = [msgspec.json.encode(obj) for obj in (old, new)]
    whole = [RawObject.from_json(body) for body in bodies]
    typed = [RESOURCE_CLAIMS.codec.decode(body) for body in bodies]

    is_same = is_same_ownership(*whole)

    assert is_same == is_same_ownership(*typed)
    if is_same:
        assert is_same_in_graph(old, new)
    elif not (old.is_being_deleted or new.is_being_deleted):
        assert not is_same_in_graph(old, new)
