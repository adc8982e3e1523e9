"""Views of untyped kinds: what they read, and that nothing is lost when they are changed."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from allot.api.base import replace
from allot.api.core import Event, Namespace, Node, Pod, ResourceQuota
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.raw import RawObject

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "futureField": [1]},
    "spec": {
        "nodeName": "n",
        "futureField": {"a": 1},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}, "new": True}],
    },
    "status": {
        "phase": "Succeeded",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready"}],
    },
}


def test_the_key_follows_the_metadata() -> None:
    pod = Pod(POD)
    assert pod.key == ObjectKey("ns", "p")

    renamed = pod.with_metadata(replace(pod.metadata, name="q"))
    moved = pod.with_value("other", "metadata", "namespace")

    assert (renamed.key, moved.key) == (ObjectKey("ns", "q"), ObjectKey("other", "p"))
    assert pod.with_value("Failed", "status", "phase").key == pod.key


def test_pod_view() -> None:
    pod = Pod(POD)

    assert pod.key == ObjectKey("ns", "p")
    assert str(pod.key) == "ns/p"
    assert pod.gvk == GroupVersionKind("", "v1", "Pod")
    assert pod.spec.resource_claims[0].resource_claim_name == "c"
    assert pod.spec.containers[0].resources.claims[0].name == "gpu"
    assert pod.node_name == "n"
    assert pod.scheduler_name == "default-scheduler"
    assert pod.is_finished
    assert pod.conditions[0].type == "Ready"
    assert repr(pod) == "Pod(Pod ns/p)"


def test_a_change_keeps_everything_else() -> None:
    before = json.loads(json.dumps(POD))
    pod = Pod(POD)

    changed = pod.with_value("Running", "status", "phase").with_metadata(
        replace(pod.metadata, labels={"a": "b"})
    )

    assert pod.data == before, "the original is shared and must not change"
    assert changed.get("status") == before["status"] | {"phase": "Running"}
    assert changed.get("metadata") == before["metadata"] | {"labels": {"a": "b"}}
    assert changed.get("spec") == before["spec"]
    assert Pod.from_json(changed.to_json()) == changed
    assert changed != pod


def test_metadata_becomes_json_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a write changes the metadata, and whatever else it changes in between."""
    converted: list[object] = []
    to_builtins = msgspec.to_builtins

    def counting(value: object, **options: Any) -> Any:
        converted.append(value)
        return to_builtins(value, **options)

    monkeypatch.setattr(msgspec, "to_builtins", counting)
    entry = {"manager": "m", "fieldsV1": {"f:spec": {}}}
    pod = Pod(POD)
    for generation in range(1, 4):
        metadata = replace(pod.metadata, generation=generation, managed_fields=(entry,))
        pod = pod.with_metadata(metadata).with_value(generation, "status", "number")
        assert pod.get("spec", "nodeName") == "n"
    assert pod.key == ObjectKey("ns", "p")
    assert pod.get("metadata", "generation") == 3
    assert pod.get("metadata", "futureField") == [1]
    assert pod.get("metadata", "managedFields")[0] is entry, "entries are shared"
    assert pod.get("status", "number") == 3
    assert len(converted) == 1


def test_a_change_keeps_the_views_that_it_does_not_touch() -> None:
    pod = Pod(POD)
    spec = pod.spec

    changed = pod.with_metadata(replace(pod.metadata, name="q"))

    assert changed.spec is spec
    assert changed.with_value("m", "spec", "nodeName").metadata is changed.metadata
    assert changed.with_value("r", "metadata", "name").metadata.name == "r"
    assert changed.data["metadata"]["name"] == "q"
    assert changed.with_value("m", "spec", "nodeName").get("metadata", "name") == "q"


def test_removing_and_creating() -> None:
    pod = Pod(POD).with_value(None, "status", "podIPs").with_value(1, "new", "inner")

    assert "podIPs" not in pod.get("status")
    assert pod.get("new", "inner") == 1
    assert pod.get("spec", "containers", 7, "name", default="none") == "none"


def test_parts_of_the_wrong_shape_read_as_empty() -> None:
    assert Pod({"spec": {"containers": "x"}}).spec.containers == ()


def test_other_views() -> None:
    node = Node(
        {
            "spec": {"unschedulable": True, "taints": [{"key": "a"}]},
            "status": {"allocatable": {"cpu": "2"}},
        }
    )
    quota = ResourceQuota({"spec": {"hard": {"pods": "3"}}, "status": {"used": {"pods": "1"}}})
    event = Event({"reason": "R", "message": "m", "involvedObject": {"kind": "Pod"}})

    assert node.is_unschedulable
    assert node.taints == [{"key": "a"}]
    assert node.allocatable == {"cpu": Quantity.of(2)}
    assert quota.hard["pods"] - quota.used["pods"] == Quantity.of(2)
    assert (event.reason, event.message) == ("R", "m")
    assert Namespace({"status": {"phase": "Terminating"}}).is_terminating


@pytest.mark.parametrize("body", [b"[]", b"{", b"1"])
def test_not_an_object(body: bytes) -> None:
    with pytest.raises(DecodeError):
        Pod.from_json(body)


def test_conditions_of_the_status() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T10:00:00Z"}
    obj = RawObject({"status": {"conditions": [{"type": "Other", "status": "False"}, ready]}})

    assert obj.condition("Ready") == ready
    assert (obj.has_condition("Ready"), obj.has_condition("Other")) == (True, False)
    assert obj.true_since("Ready") == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert obj.true_since("Other") is None
    assert RawObject({}).condition("Ready") is None
    assert not RawObject({"status": {"conditions": None}}).has_condition("Ready")
    assert not RawObject({"status": "text"}).has_condition("Ready")


def test_an_object_with_metadata_that_is_not_json_yet() -> None:
    rest = {"metadata": {"name": "old", "unknown": 1}, "kind": "Pod"}

    obj = RawObject.with_rest(rest, ObjectMeta(name="a", namespace="b"))

    assert (obj.metadata.name, obj.key.name) == ("a", "a")
    assert obj.data == {
        "metadata": {"name": "a", "namespace": "b", "unknown": 1},
        "kind": "Pod",
    }


@pytest.mark.parametrize("is_changed", [False, True])
def test_parts_replace_what_was_there(is_changed: bool) -> None:
    pod = Pod(POD)
    if is_changed:
        pod = pod.with_metadata(replace(pod.metadata, name="q"))
    one_by_one = pod.with_value({"a": 1}, "spec").with_value({"b": 2}, "status")

    at_once = pod.with_parts({"spec": {"a": 1}, "status": {"b": 2}})

    assert at_once == one_by_one
    assert at_once.metadata == pod.metadata
    assert pod.get("spec") == POD["spec"]

    renamed = replace(pod.metadata, name="r")
    assert pod.with_parts({"spec": {"a": 1}}, renamed) == pod.with_metadata(renamed).with_value(
        {"a": 1}, "spec"
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("spec", "nodeName"), "n", id="found"),
        pytest.param(("spec", "no"), "?", id="missing"),
        pytest.param(("no", "no"), "?", id="parent-missing"),
        pytest.param(("null",), "?", id="null"),
        pytest.param(("null", "no"), "?", id="parent-is-null"),
        pytest.param(("spec", "nodeName", "no"), "?", id="parent-is-a-text"),
        pytest.param(("list", 1), 2, id="index"),
        pytest.param(("list", 2), "?", id="index-too-large"),
        pytest.param(("list", "no"), "?", id="name-in-a-list"),
        pytest.param(("spec", 0), "?", id="index-in-an-object"),
        pytest.param(("false",), False, id="false"),
    ],
)
def test_values_at_a_path(path: tuple[str | int, ...], value: object) -> None:
    obj = RawObject({"spec": {"nodeName": "n"}, "null": None, "list": [1, 2], "false": False})

    assert obj.get(*path, default="?") == value


@pytest.mark.parametrize("data", [POD, {}])
def test_a_pod_whose_claims_were_read_can_be_copied(data: dict[str, Any]) -> None:
    """Plugins may send what they know to another process."""
    pod = Pod(data)
    used = pod.used_claims

    for same in (copy.deepcopy(pod), pickle.loads(pickle.dumps(pod))):  # noqa: S301 - our own
        assert same == pod
        assert same.used_claims == used
