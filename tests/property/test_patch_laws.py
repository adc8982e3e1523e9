"""Laws of patches: they do what they say, change nothing else, and no input makes them fall over."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode, encode

from allot.api.identities import GroupVersionKind
from allot.apiserver.registry.patches import (
    PatchError,
    decode_document,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from allot.apiserver.registry.patches.documents import is_same
from allot.apiserver.schemas.types import Type, type_of

Json = Any
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.sampled_from(["a", "b", "c", "", "a/b", "~", "0", "-"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 0.5, 2**70, "a", "b", ""])
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(names, documents, max_size=4)

# Pods with wrong and right shapes, and patches of them with all directives.
pod_fields = st.sampled_from(
    ["containers", "tolerations", "nodeSelector", "volumes", "nodeName", "x"]
)
item_fields = st.sampled_from(["name", "image", "env", "args", "value", "ports", "containerPort"])
directives = st.sampled_from(
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/args",
        "$ref",
    ]
)
few_names = st.sampled_from(["name", "image", "a", "b", "merge", "replace", "delete"])
odd_values = st.recursive(
    scalars | few_names,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(item_fields | directives, inner, max_size=4)
    ),
    max_leaves=10,
)
items = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"])}, optional={"image": few_names, "args": odd_values}
)
changed_items = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c", "d"])},
    optional={
        "image": few_names | st.none(),
        "$patch": st.sampled_from(["delete", "replace"]),
    },
)
pod_specs = st.dictionaries(
    pod_fields | directives, odd_values | st.lists(items, max_size=4), max_size=4
)
pod_patches = st.dictionaries(
    pod_fields | directives, odd_values | st.lists(changed_items, max_size=4), max_size=4
)


def schema() -> Type:
    found = type_of(GroupVersionKind("", "v1", "Pod"))
    assert found is not None
    return found


POD = schema()


def as_bytes(value: Json) -> bytes:
    return encode(value)


def strategic(document: Json, patch: bytes) -> Json:
    return strategic_merge_patch(document, patch, POD)


ALL_KINDS = [
    pytest.param(json_patch, id="json"),
    pytest.param(merge_patch, id="merge"),
    pytest.param(strategic, id="strategic"),
]
Patching = Callable[[Json, bytes], Json]


# --- JSON patches ---


@unhurried
@given(documents, documents.filter(lambda document: isinstance(document, dict | list)))
def test_a_diff_leads_to_its_target(before: Json, after: Json) -> None:
    difference = jsonpatch.make_patch(before, after).patch

    assert is_same(json_patch(before, as_bytes(difference)), after)


pointers = st.lists(names | st.sampled_from(["1", "2"]), min_size=1, max_size=3).map(
    lambda parts: "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": pointers,
            "from": pointers,
            "value": documents,
        }
    ),
    max_size=4,
)


@unhurried
@given(documents, operations)
def test_another_implementation_agrees(document: Json, patch: Json) -> None:
    # Beyond the RFC, in Kubernetes what is not there counts as null, and is added when it is replaced.
    assume(not any(step["op"] == "test" and step["value"] is None for step in patch))
    try:
        expected = jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        assume(not any(step["op"] in ("copy", "replace") for step in patch))
        with pytest.raises(PatchError):
            json_patch(document, as_bytes(patch))
    else:
        assert is_same(json_patch(document, as_bytes(patch)), expected)


# --- merge patches ---


def merged_by_the_book(target: Json, patch: Json) -> Json:
    """The pseudo code of RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged_by_the_book(result.get(name), value)
    return result


@unhurried
@given(documents, objects)
def test_merge_patches_follow_the_rfc(document: Json, patch: Json) -> None:
    assert is_same(merge_patch(document, as_bytes(patch)), merged_by_the_book(document, patch))


@unhurried
@given(documents, objects)
def test_merging_twice_is_merging_once(document: Json, patch: Json) -> None:
    once = merge_patch(document, as_bytes(patch))

    assert is_same(merge_patch(once, as_bytes(patch)), once)


@unhurried
@given(objects, objects)
def test_without_lists_strategic_patches_are_merge_patches(document: Json, patch: Json) -> None:
    """Nothing in these objects has a type, so no list has a key."""
    before, change = {"x": document}, {"x": patch}

    result = strategic(before, as_bytes(change))

    assert is_same(result, merge_patch(before, as_bytes(change)))


# --- strategic merge patches ---


@unhurried
@given(pod_specs, st.dictionaries(pod_fields, scalars.filter(lambda value: value is not None)))
def test_replace_leaves_nothing_of_what_was(spec: Json, patch: Json) -> None:
    change = {"spec": {"$patch": "replace", **patch}}

    assert strategic({"spec": spec}, as_bytes(change)) == {"spec": patch}


@unhurried
@given(st.lists(items, unique_by=lambda item: item["name"]), st.lists(changed_items, max_size=4))
def test_keyed_lists_hold_each_key_once(live: Json, changes: Json) -> None:
    before = {"spec": {"containers": live}}

    after = strategic(before, as_bytes({"spec": {"containers": changes}}))["spec"]["containers"]

    found = [item["name"] for item in after]
    is_replaced = any(change.get("$patch") == "replace" for change in changes)
    deleted = {change["name"] for change in changes if change.get("$patch") == "delete"}
    set_ = {change["name"] for change in changes if "$patch" not in change}
    kept = set() if is_replaced else {item["name"] for item in live} - deleted
    assert len(found) == len(set(found))
    assert set(found) == kept | set_
    untouched = kept - set_
    before_and_after = [
        [item["name"] for item in items_ if item["name"] in untouched] for items_ in (live, after)
    ]
    assert before_and_after[0] == before_and_after[1]


@unhurried
@given(st.permutations("abcd"), st.permutations("abcde").map(lambda order: order[:3]))
def test_the_wanted_order_is_kept(live: list[str], order: list[str]) -> None:
    change = {"$setElementOrder/containers": [{"name": name} for name in order]}
    before = {"spec": {"containers": [{"name": name} for name in live]}}

    after = strategic(before, as_bytes({"spec": change}))["spec"]["containers"]

    found = [item["name"] for item in after]
    assert sorted(found) == sorted(live)
    assert [name for name in found if name in order] == [name for name in order if name in live]


# --- all of them ---


@pytest.mark.parametrize("patching", ALL_KINDS)
@unhurried
@given(pod_specs, pod_patches | operations | documents | st.binary(max_size=20))
def test_nothing_but_patch_errors(patching: Patching, spec: Json, patch: Json) -> None:
    body = patch if isinstance(patch, bytes) else as_bytes(patch)
    wrapped = as_bytes({"spec": patch}) if isinstance(patch, dict) else body
    document = {"spec": spec}
    before = json.dumps(document)
    for each in (body, wrapped):
        with suppress(PatchError):
            encode(patching(document, each))
        assert json.dumps(document) == before


def with_raw(value: Json) -> Json:
    """The same document with the values of `a` and `b` kept as bytes, spaces and all."""
    if isinstance(value, dict):
        return {
            name: Raw(json.dumps(inner, indent=1).encode()) if name in "ab" else with_raw(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [with_raw(inner) for inner in value]
    return value


@pytest.mark.parametrize("patching", ALL_KINDS)
@unhurried
@given(objects, objects | operations)
def test_bytes_make_no_difference(patching: Patching, document: Json, patch: Json) -> None:
    """A document that carries values as bytes is patched like one that does not."""
    opaque = with_raw(document)
    try:
        expected = patching(document, as_bytes(patch))
    except PatchError:
        with pytest.raises(PatchError):
            patching(opaque, as_bytes(patch))
    else:
        assert is_same(decode(encode(patching(opaque, as_bytes(patch)))), expected)


@unhurried
@given(objects)
def test_patches_that_say_nothing_change_nothing(document: Json) -> None:
    opaque = with_raw(document)

    for result in (json_patch(opaque, b"[]"), merge_patch(opaque, b"{}"), strategic(opaque, b"{}")):
        assert encode(result) == encode(opaque)
    assert encode(decode_document(encode(document))) == encode(document)
