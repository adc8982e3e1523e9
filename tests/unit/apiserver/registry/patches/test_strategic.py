"""Strategic merge patches, on the types of real kinds."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from msgspec import Raw

from allot.api.identities import GroupVersionKind
from allot.api.json_limits import MAX_DEPTH
from allot.apiserver.registry.patches import PatchError, merge_patch, strategic_merge_patch
from allot.apiserver.schemas.types import Type, type_of

Json = dict[str, Any]


def schema(name: str) -> Type:
    found = type_of(GroupVersionKind.parse(name))
    assert found is not None
    return found


POD = schema("v1/Pod")
CLAIM = schema("resource.k8s.io/v1/ResourceClaim")


def patched(document: Json, patch: Any, kind: Type = POD) -> Any:
    before = copy.deepcopy(document)
    result = strategic_merge_patch(document, json.dumps(patch).encode(), kind)
    assert document == before
    return result


def spec(spec: Json, patch: Json) -> Json:
    """The pod's spec after a patch of it."""
    result: Json = patched({"spec": spec}, {"spec": patch})["spec"]
    return result


def containers(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


def names(spec: Json, field: str = "containers") -> str:
    return "".join(item["name"] for item in spec[field])


AB = {"containers": [{"name": "a", "image": "i1"}, {"name": "b", "image": "i2"}]}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        pytest.param({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}, id="unknown-maps-merge"),
        pytest.param({"a": [1]}, {"a": [2]}, {"a": [2]}, id="unknown-lists-replace"),
        pytest.param({"a": 1, "b": 1}, {"a": None}, {"b": 1}, id="null-deletes"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null-in-new-map"),
        pytest.param({}, {"a": [{"b": None}]}, {"a": [{"b": None}]}, id="null-in-list-is-a-value"),
        pytest.param({"a": "x"}, {"a": {"y": 1}}, {"a": {"y": 1}}, id="other-type"),
        pytest.param({"a": {"y": 1}}, {"a": "x"}, {"a": "x"}, id="other-type-back"),
        pytest.param({"a": {"$ref": 1}}, {"a": {"$ref": 2}}, {"a": {"$ref": 2}}, id="dollar-names"),
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
            id="labels",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}},
            {"spec": {"nodeSelector": {"b": "2"}}},
            id="replace-map",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"$patch": "delete"}}},
            {"spec": {"nodeSelector": {}}},
            id="delete-map",
        ),
        pytest.param({}, {"spec": {"$patch": "delete"}}, {}, id="delete-missing-map"),
        pytest.param({"a": 1}, {"$patch": "replace", "b": 1}, {"b": 1}, id="replace-all"),
    ],
)  # fmt: skip
def test_maps(before: Json, patch: Json, after: Json) -> None:
    assert patched(before, patch) == after


def test_items_merge_by_their_key() -> None:
    patch = {"containers": [{"name": "b", "image": "i9"}, {"name": "c", "image": "i3"}]}

    assert spec(AB, patch) == {
        "containers": [
            {"name": "a", "image": "i1"},
            {"name": "b", "image": "i9"},
            {"name": "c", "image": "i3"},
        ]
    }


def test_lists_inside_items_merge_too() -> None:
    before = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["1"]}]}
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["2"]}]}

    (container,) = spec(before, patch)["containers"]

    assert names(container, "env") == "YX"  # what is new comes first
    assert container["args"] == ["2"]


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        pytest.param("ab", [{"name": "a", "$patch": "delete"}], "b", id="delete"),
        pytest.param("ab", [{"name": "x", "$patch": "delete"}], "ab", id="delete-missing"),
        pytest.param("ab", [{"$patch": "replace"}, {"name": "c"}], "c", id="replace"),
        pytest.param("ab", [{"$patch": "replace"}], "", id="replace-with-nothing"),
        pytest.param("ab", [], "ab", id="nothing"),
        pytest.param("a", [{"name": "b"}], "ba", id="new-comes-first"),
        pytest.param("ab", [{"name": "b"}, {"name": "c"}], "abc", id="new-behind-its-neighbour"),
        pytest.param("abc", [{"name": "c"}, {"name": "b"}], "acb", id="order-of-the-patch"),
        pytest.param("", [{"name": "b"}, {"name": "a"}], "ba", id="into-empty"),
        pytest.param("", [{"name": "b"}, {"name": "b"}], "b", id="twice-is-once"),
        pytest.param("ab", [{"name": "a", "$patch": "delete"}, {"name": "a"}], "ab", id="anew"),
    ],
)  # fmt: skip
def test_keyed_lists(live: str, patch: list[Any], result: str) -> None:
    assert names(spec({"containers": containers(*live)}, {"containers": patch})) == result


def test_directives_do_not_stay() -> None:
    patch = {
        "containers": [
            {"name": "a", "$setElementOrder/env": [{"name": "X"}], "env": [{"name": "X"}]},
        ],
        "tolerations": [{"key": "k"}],
        "$retainKeys": ["containers", "tolerations"],
    }  # fmt: skip

    result = spec({"nodeName": "n", "containers": containers("a")}, patch)

    assert "$" not in json.dumps(result)
    assert result == {
        "containers": [{"name": "a", "env": [{"name": "X"}]}],
        "tolerations": [{"key": "k"}],
    }


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"affinity": {"$retainKeys": ["nodeAffinity"], "podAffinity": {}}}, id="object"),
        pytest.param({"affinity": {"$retainKeys": 5}}, id="no-directive"),
        pytest.param({"containers": [{"name": "b", "$retainKeys": ["name"]}]}, id="item"),
        pytest.param({"initContainers": [{"name": "b", "$setElementOrder/env": []}]}, id="list"),
    ],
)  # fmt: skip
def test_new_objects_have_no_directives(patch: dict[str, Any]) -> None:
    """They are unknown fields."""
    result = spec({"containers": []}, patch)

    assert result == {"containers": []} | patch


@pytest.mark.parametrize(
    ("live", "order", "result"),
    [
        pytest.param("abc", "cba", "cba", id="all"),
        pytest.param("abc", "cb", "acb", id="others-stay-before-what-they-were-before"),
        pytest.param("abxc", "bca", "bxca", id="in-between"),
        pytest.param("abc", "xbz", "abc", id="missing-ones-do-not-matter"),
        pytest.param("abc", "", "abc", id="empty"),
    ],
)
def test_set_element_order_alone(live: str, order: str, result: str) -> None:
    patch = {"$setElementOrder/containers": containers(*order)}

    assert names(spec({"containers": containers(*live)}, patch)) == result


def test_set_element_order_with_changes() -> None:
    before = {"containers": containers("a", "b", "c", "x")}
    patch = {
        "$setElementOrder/containers": containers("c", "d", "a"),
        "containers": [{"name": "d"}, {"name": "b", "$patch": "delete"}],
    }

    assert names(spec(before, patch)) == "cdax"


def test_as_kubectl_apply_sends_it() -> None:
    """Removing one variable, changing another: everything that has a key is named in its order."""
    before = {
        "containers": [
            {
                "name": "m",
                "image": "i",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            }
        ],
        "dnsPolicy": "ClusterFirst",
    }
    patch = {
        "$setElementOrder/containers": [{"name": "m"}],
        "containers": [
            {
                "name": "m",
                "$setElementOrder/env": [{"name": "B"}],
                "env": [{"name": "B", "value": "3"}, {"name": "A", "$patch": "delete"}],
            }
        ],
    }

    assert spec(before, patch) == {
        "containers": [{"name": "m", "image": "i", "env": [{"name": "B", "value": "3"}]}],
        "dnsPolicy": "ClusterFirst",
    }


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        pytest.param(["a", "b"], {"finalizers": ["b"]}, ["a", "b"], id="known"),
        pytest.param(["a"], {"finalizers": ["c"]}, ["c", "a"], id="union"),
        pytest.param(["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a", "z"]}, ["b"], id="delete"),
        pytest.param(
            ["a", "b"],
            {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"],
             "$setElementOrder/finalizers": ["b", "c"]},
            ["b", "c"],
            id="all-of-it",
        ),
        pytest.param(["a", "b"], {"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"], id="order"),
    ],
)  # fmt: skip
def test_lists_of_scalars(live: list[str], patch: Json, result: list[str]) -> None:
    after = patched({"metadata": {"finalizers": live}}, {"metadata": patch})

    assert after["metadata"]["finalizers"] == result


def test_deleting_from_a_list_that_is_not_there() -> None:
    assert patched(
        {"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    ) == {"metadata": {}}


def test_retain_keys_changes_one_form_for_another() -> None:
    before = {"volumes": [{"name": "v", "emptyDir": {}}]}
    patch = {
        "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]
    }

    assert spec(before, patch) == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}


def test_ports_are_keyed_by_number() -> None:
    before = {
        "containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}]}]
    }
    patch = {"containers": [{"name": "a", "ports": [{"containerPort": 81, "name": "x"}]}]}

    (container,) = spec(before, patch)["containers"]

    assert container["ports"] == [{"containerPort": 80}, {"containerPort": 81, "name": "x"}]


def test_reservations_and_conditions_of_a_claim() -> None:
    """What kube-scheduler sends to reserve an allocated claim."""
    before = {
        "status": {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}]}
    }
    reserve = {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "2"}]}}
    release = {"status": {"reservedFor": [{"uid": "1", "$patch": "delete"}]}}

    reserved = patched(before, reserve, CLAIM)
    assert {consumer["uid"] for consumer in reserved["status"]["reservedFor"]} == {"1", "2"}
    assert reserved["status"]["allocation"] == {}

    released = patched(reserved, release, CLAIM)
    assert [consumer["uid"] for consumer in released["status"]["reservedFor"]] == ["2"]


def test_opaque_parameters_keep_their_bytes() -> None:
    opaque = Raw(b'{ "b": 1 }')
    config = {"opaque": {"driver": "d", "parameters": opaque}}
    document = {"metadata": {"labels": {}}, "spec": {"devices": {"config": [config]}}}

    result = patched(document, {"metadata": {"labels": {"a": "b"}}}, CLAIM)

    assert result["spec"]["devices"]["config"][0]["opaque"]["parameters"] is opaque
    same = strategic_merge_patch({"x": opaque}, b'{"x":{"b":1}}', CLAIM)
    assert same["x"] is opaque


@pytest.mark.parametrize(
    ("patch", "code", "why"),
    [
        pytest.param([], 400, "cannot unmarshal array into Go value", id="list"),
        pytest.param({"$patch": "eat"}, 422, r"unknown patch type: eat in map: map\[\$patch:eat\]", id="directive"),
        pytest.param({"spec": {"containers": [{"$patch": 1}]}}, 422, r"unknown patch type: %!s\(int64=1\) in map", id="item-directive"),
        pytest.param({"$patch": "merge"}, 422, "unknown patch type: merge in map", id="merge"),
        pytest.param({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}, 422, "merging lists cannot yet", id="merge-item"),
        pytest.param({"spec": {"containers": [{"image": "x"}]}}, 422, "merge key: name", id="no-key"),
        pytest.param({"spec": {"containers": ["a"]}}, 422, "list element types are not identical", id="no-map"),
        pytest.param({"spec": {"containers": [{"$patch": "delete"}]}}, 422, "merge key: name", id="delete-nothing"),
        pytest.param({"$retainKeys": "a"}, 400, "invalid patch format of retainKeys", id="retain"),
        pytest.param({"$retainKeys": ["a"], "b": 1}, 400, '"b" is set but not in the list', id="not-retained"),
        pytest.param({"$setElementOrder/a": 1}, 422, "but received a int64", id="order"),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}},
            422, "doesn't match .setElementOrder list", id="not-in-order",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": containers("a", "b"), "containers": containers("b", "a")}},
            422, "The order in patch list", id="contradictory-order",
        ),
    ],
)  # fmt: skip
def test_wrong_patches(patch: Any, code: int, why: str) -> None:
    with pytest.raises(PatchError, match=why) as caught:
        patched({"spec": {"containers": containers("a", "b")}}, patch)

    assert caught.value.code == code


def test_deep_patches() -> None:
    """As deep as bodies may be: merging them does not exhaust the interpreter's stack."""
    depth = MAX_DEPTH - 1
    deep = json.loads('{"a":' * depth + "1" + "}" * depth)

    assert patched(deep, deep) == deep
    assert merge_patch(deep, json.dumps(deep).encode()) == deep
    assert strategic_merge_patch(
        {"a": Raw(json.dumps(deep["a"]).encode())}, json.dumps(deep).encode(), POD
    )
    with pytest.raises(PatchError, match="too deeply"):
        patched({}, {"a": {"a": deep}})
