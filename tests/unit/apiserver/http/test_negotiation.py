"""Content negotiation: bodies by Content-Type, answers by Accept."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import encode_document, in_envelope
from allot.apiserver.http.negotiation import (
    DISCOVERY_TRANSFORMS,
    LIST_TRANSFORMS,
    OBJECT_TRANSFORMS,
    PROTOBUF,
    Accepted,
    Body,
    BodyError,
    Transform,
    error_format,
    negotiate,
    patch_format,
    read_body,
)

DELETE_OPTIONS = GroupVersionKind("", "v1", "DeleteOptions")

# --- what comes in ---


@pytest.mark.parametrize(
    "content_type",
    ["", " ", "application/json", "application/json; charset=utf-8", "Application/JSON;charset=x"],
)
def test_json_is_passed_on(content_type: str) -> None:
    assert read_body(b'{ "a": 1, "a": 2', content_type) == Body(b'{ "a": 1, "a": 2')


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        (b"a: 1\nb: [x, {c: null}]\n", {"a": 1, "b": ["x", {"c": None}]}),
        (b"---\na: yes\n", {"a": True}),
        (
            b"a: 1.0\nb: 0755\nc: 18446744073709551616",
            {"a": 1, "b": 493, "c": 18446744073709551616},
        ),
        ("a: grün".encode(), {"a": "grün"}),
        (b"a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        (b"{a: 1}", {"a": 1}),
        (b"", None),
        (b"# nothing", None),
        (b"---\n---\na: 1", {"a": 1}),
        (b'{"a": 1}\n---\n', {"a": 1}),
    ],
)
def test_yaml_becomes_json(yaml: bytes, value: Any) -> None:
    body = read_body(yaml, "application/yaml; charset=utf-8")

    assert json.loads(body.json) == value
    assert body.duplicates == ()


def test_json_in_yaml_keeps_its_bytes() -> None:
    assert read_body(b' { "a": 1.0 }', "application/yaml").json == b' { "a": 1.0 }'


def test_duplicate_keys_are_reported() -> None:
    body = read_body(b"a: 1\nspec:\n  b: [{c: 1, c: 2}]\na: 2", "application/yaml")

    assert json.loads(body.json) == {"a": 2, "spec": {"b": [{"c": 2}]}}
    assert body.duplicates == ("spec.b[0].c", "a")


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 10))
    for letter in range(ord("b"), ord("k"))
)
LONG_BOMB = b"a: &a " + b"x" * 100_000 + b"\nb: [" + b",".join([b"*a"] * 1000) + b"]"


@pytest.mark.parametrize(
    ("yaml", "why"),
    [
        pytest.param(b"a: 1\n---\nb: 1", "more than one document", id="two"),
        pytest.param(b"a: [", "line 2: while parsing", id="open"),
        pytest.param(b"a: b: c", "line 1", id="nested-plain"),
        pytest.param(b"\xff", "not UTF-8", id="bytes"),
        pytest.param(b'a: "\\ud800"', "line 1|UTF-8", id="half-a-character"),
        pytest.param(b"a: \x00", "line 1: .*not allowed|control", id="control-character"),
        pytest.param(BOMB, "too many values", id="alias-bomb"),
        pytest.param(LONG_BOMB, "too many values", id="alias-bomb-of-long-text"),
        pytest.param(b"[" * 1000 + b"]" * 1000, "levels deep", id="deep"),
        pytest.param(b"{a: " * 1000 + b"}" * 1000, "levels deep", id="deep-maps"),
        pytest.param(b"a: !!python/object/new:os.system [x]", "means nothing here", id="tag"),
        pytest.param(b"a: .nan", "not a number JSON can carry", id="nan"),
        pytest.param(b"? [a]\n: b", "keys must be texts", id="key"),
        pytest.param(b"{" * 100_000, "levels deep|expected|found|did not", id="many-braces"),
    ],
)  # fmt: skip
def test_not_yaml(yaml: bytes, why: str) -> None:
    with pytest.raises(BodyError, match=why) as caught:
        read_body(yaml, "application/yaml")

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message.startswith("error converting YAML to JSON: yaml: ")


@pytest.mark.parametrize(
    "content_type",
    ["application/cbor", "text/plain", "application/xml", "json", "application/merge-patch+json"],
)  # fmt: skip
def test_formats_we_do_not_read(content_type: str) -> None:
    with pytest.raises(BodyError) as caught:
        read_body(b"{}", content_type)

    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")
    assert caught.value.message == (
        "the body of the request was in an unknown format - "
        "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_kinds_of_patches() -> None:
    assert patch_format("application/json-patch+json") == "json"
    assert patch_format("application/merge-patch+json; charset=UTF-8") == "merge"
    assert patch_format("application/strategic-merge-patch+json") == "strategic"
    assert patch_format("application/apply-patch+yaml") == "apply"


@pytest.mark.parametrize("content_type", ["", "application/json", "application/apply-patch+json"])
def test_not_a_kind_of_patch(content_type: str) -> None:
    with pytest.raises(BodyError, match="415: Unsupported Media Type") as caught:
        patch_format(content_type)

    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")


# --- what goes out ---

KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
INFORMER = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
OLD_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "transforms", "accepted"),
    [
        pytest.param("", LIST_TRANSFORMS, Accepted("json"), id="none"),
        pytest.param("*/*", LIST_TRANSFORMS, Accepted("json"), id="any"),
        pytest.param("application/*", (), Accepted("json"), id="any-application"),
        pytest.param("application/json", (), Accepted("json"), id="json"),
        pytest.param("Application/YAML", (), Accepted("yaml"), id="yaml"),
        pytest.param("application/yaml, application/json", (), Accepted("yaml"), id="first-wins"),
        pytest.param("application/yaml;q=0.5, application/json", (), Accepted("json"), id="quality"),
        pytest.param("*/*, application/yaml", (), Accepted("yaml"), id="specific-wins"),
        pytest.param("application/yaml;q=0,*/*", (), Accepted("json"), id="refused"),
        pytest.param("application/json;q=x", (), Accepted("json"), id="odd-quality"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", (), Accepted("protobuf"), id="client-go"),
        pytest.param("application/vnd.kubernetes.protobuf, */*", (), Accepted("protobuf"), id="scheduler"),
        pytest.param("application/json,application/vnd.kubernetes.protobuf", (), Accepted("json"), id="json-first"),
        pytest.param("application/json;q=0.5,application/vnd.kubernetes.protobuf", (), Accepted("protobuf"), id="quality"),
        pytest.param("application/json;stream=watch", (), Accepted("json"), id="stream"),
        pytest.param("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", LIST_TRANSFORMS, Accepted("json"), id="no-protobuf-tables"),
        pytest.param(BROWSER, (), Accepted("json"), id="browser"),
        pytest.param("application/json; charset=UTF-8", (), Accepted("json"), id="charset"),
        pytest.param("application/json;pretty=1;x", (), Accepted("json"), id="other-parameters"),
        pytest.param(KUBECTL, LIST_TRANSFORMS, Accepted("json", "Table", "v1"), id="kubectl"),
        pytest.param(KUBECTL, (), Accepted("json"), id="kubectl-where-there-are-no-tables"),
        pytest.param(KUBECTL.replace("v=v1;", "v=v9;"), LIST_TRANSFORMS, Accepted("json", "Table", "v1beta1"), id="old-table"),
        pytest.param("application/yaml;as=Table;v=v1;g=meta.k8s.io", OBJECT_TRANSFORMS, Accepted("yaml", "Table", "v1"), id="yaml-table"),
        pytest.param(INFORMER, LIST_TRANSFORMS, Accepted("protobuf", "PartialObjectMetadataList", "v1"), id="metadata"),
        pytest.param(INFORMER, OBJECT_TRANSFORMS, Accepted("json"), id="metadata-list-of-an-object"),
        pytest.param(INFORMER.replace("List", ""), OBJECT_TRANSFORMS, Accepted("protobuf", "PartialObjectMetadata", "v1"), id="metadata-of-an-object"),
        pytest.param(DISCOVERY, DISCOVERY_TRANSFORMS, Accepted("json", "APIGroupDiscoveryList", "v2"), id="discovery"),
        pytest.param(OLD_DISCOVERY, DISCOVERY_TRANSFORMS, Accepted("json", "APIGroupDiscoveryList", "v2beta1"), id="old-discovery"),
        pytest.param(",;,application/json", (), Accepted("json"), id="commas"),
    ],
)  # fmt: skip
def test_acceptable(
    accept: str, transforms: frozenset[Transform] | tuple[()], accepted: Accepted
) -> None:
    assert negotiate(accept, frozenset(transforms)) == accepted


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("text/html", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
        ("application/cbor", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("application/json;as=Table", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("application/json;charset=latin1", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("application/json;q=0", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
    ],
)  # fmt: skip
def test_not_acceptable(accept: str, message: str) -> None:
    with pytest.raises(BodyError) as caught:
        negotiate(accept, LIST_TRANSFORMS)

    assert (caught.value.code, caught.value.reason) == (406, "NotAcceptable")
    assert caught.value.message == message


def test_watches_are_json() -> None:
    assert negotiate("application/json;stream=watch", watch=True) == Accepted("json")
    assert negotiate("application/yaml,*/*", watch=True) == Accepted("json")
    with pytest.raises(BodyError):
        negotiate("application/yaml", watch=True)
    for accept in ("application/yaml", "application/json;stream=other"):
        with pytest.raises(BodyError) as caught:
            negotiate(accept, watch=True)
        assert caught.value.message == (
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch"
        )


def test_watches_in_protobuf() -> None:
    for accept in (PROTOBUF, f"{PROTOBUF};stream=watch", f"{PROTOBUF}, */*"):
        assert negotiate(accept, watch=True) == Accepted("protobuf")


def test_kinds_without_messages_are_shown_as_json() -> None:
    assert negotiate(f"{PROTOBUF},application/json", protobuf=False) == Accepted("json")
    metadata = f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    assert negotiate(metadata, LIST_TRANSFORMS, protobuf=False).format == "protobuf"
    with pytest.raises(BodyError, match="only the following media types"):
        negotiate(PROTOBUF, protobuf=False)


def test_formats_of_errors() -> None:
    assert error_format(f"{PROTOBUF}, */*") == "protobuf"
    assert error_format(f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io") == "json"
    assert error_format("text/plain") == "json"


def test_protobuf_becomes_json() -> None:
    body = encode_document({"propagationPolicy": "Orphan"}, DELETE_OPTIONS)
    assert msgspec.json.decode(read_body(body, PROTOBUF).json) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Orphan",
    }


def test_protobuf_need_not_say_what_it_is() -> None:
    body = in_envelope(b"\x22\x06Orphan", "", "")
    read = read_body(body, PROTOBUF, DELETE_OPTIONS)
    assert msgspec.json.decode(read.json)["propagationPolicy"] == "Orphan"


def test_protobuf_that_is_none() -> None:
    with pytest.raises(BodyError, match="expected prefix"):
        read_body(b"{}", PROTOBUF)


def test_content_types() -> None:
    assert Accepted("yaml").content_type == "application/yaml"
    assert Accepted("json", "Table", "v1").content_type == "application/json"
    assert Accepted("json", "APIGroupDiscoveryList", "v2").content_type == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
