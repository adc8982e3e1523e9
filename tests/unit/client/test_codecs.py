from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.kinds import KINDS
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.client.codecs import (
    Codec,
    UnreadableEvent,
    WatchEvent,
    line_without_managed_fields,
    strip_managed_fields,
)
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.metadata import metadata_resource
from allot.client.resources import (
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RESOURCES,
    Resource,
)
from allot.client.watch_stream import Lines

CLAIM = {
    "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
    "spec": {
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]}
    },
    "status": {},
}
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
    "spec": {"nodeName": "n", "somethingNew": [1.5, {"x": None}]},
}
BOTH = pytest.mark.parametrize(
    ("resource", "document"),
    [pytest.param(PODS, POD, id="raw"), pytest.param(RESOURCE_CLAIMS, CLAIM, id="typed")],
)
POD_METADATA = metadata_resource("", "v1", "pods", "Pod", namespaced=True)
ALL_CODECS = pytest.mark.parametrize(
    ("resource", "document"),
    [
        pytest.param(PODS, POD, id="raw"),
        pytest.param(RESOURCE_CLAIMS, CLAIM, id="typed"),
        pytest.param(POD_METADATA, POD, id="metadata"),
    ],
)
STRICT_CODECS = pytest.mark.parametrize(
    "codec",
    [
        pytest.param(RESOURCE_CLAIMS.codec, id="typed"),
        pytest.param(POD_METADATA.codec, id="metadata"),
    ],
)
UNREADABLE = {"metadata": {"name": "p", "namespace": "ns", "resourceVersion": "5", "uid": 3}}


def line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj})


@BOTH
def test_identity(resource: Resource[Any], document: dict[str, Any]) -> None:
    codec = resource.codec
    obj = codec.decode(msgspec.json.encode(document))

    assert codec.key(obj) == ("ns", document["metadata"]["name"])
    assert (codec.resource_version(obj), codec.uid(obj)) == ("5", "u")
    assert msgspec.json.decode(codec.encode(obj)) == document | {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
    }


@ALL_CODECS
def test_lists(resource: Resource[Any], document: dict[str, Any]) -> None:
    listed = {"metadata": {"resourceVersion": "9", "continue": "t"}, "items": [document] * 2}

    page = resource.codec.decode_page(msgspec.json.encode(listed))

    assert (page.resource_version, page.continue_, len(page.items)) == ("9", "t", 2)
    assert (
        resource.codec.decode_page(b'{"metadata":{"resourceVersion":"9"},"items":null}').items == []
    )


@ALL_CODECS
def test_events(resource: Resource[Any], document: dict[str, Any]) -> None:
    codec = resource.codec
    end = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": "8", "creationTimestamp": None}

    added = codec.decode_event(line("ADDED", document))
    bookmark = codec.decode_event(line("BOOKMARK", {"metadata": metadata}))
    last = codec.decode_event(line("BOOKMARK", {"metadata": metadata | {"annotations": end}}))

    assert added.object == codec.decode(msgspec.json.encode(document))
    assert (added.resource_version, added.ends_initial_events) == ("5", False)
    assert bookmark == WatchEvent("BOOKMARK", None, "8", False)
    assert last == WatchEvent("BOOKMARK", None, "8", True)
    error = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"}
    with pytest.raises(ApiStatusError) as caught:
        codec.decode_event(line("ERROR", error))
    assert caught.value.is_expired


@ALL_CODECS
@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"type":"ADDED"}', b'{"type":1,"object":{}}'])
def test_malformed_objects_are_errors(
    resource: Resource[Any], document: dict[str, Any], text: bytes
) -> None:
    with pytest.raises(UnreadableAnswerError):
        resource.codec.decode_event(text)
    with pytest.raises(UnreadableAnswerError):
        resource.codec.decode_page(b"[]")


@STRICT_CODECS
def test_objects_that_cannot_be_decoded_keep_their_identity(codec: Codec[Any]) -> None:
    event = codec.decode_event(line("MODIFIED", UNREADABLE))

    assert isinstance(event, UnreadableEvent)
    assert (event.type, event.object, event.resource_version) == ("MODIFIED", None, "5")
    assert event.unreadable.key == ("ns", "p")


@STRICT_CODECS
def test_a_lenient_list_skips_objects_that_cannot_be_decoded(codec: Codec[Any]) -> None:
    listed = {"metadata": {"resourceVersion": "9"}, "items": [UNREADABLE, CLAIM]}
    body = msgspec.json.encode(listed)

    page = codec.decode_page(body, lenient=True)

    assert [codec.key(item) for item in page.items] == [("ns", "c")]
    assert [item.key for item in page.unreadable] == [("ns", "p")]
    assert page.resource_version == "9"
    with pytest.raises(UnreadableAnswerError):
        codec.decode_page(body)


def test_nulls_in_typed_objects_are_read_with_care() -> None:
    document = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": None}}, "status": None}
    body = msgspec.json.encode(document)
    codec = RESOURCE_CLAIMS.codec

    claim = codec.decode(body)

    assert claim.spec.devices.requests == ()
    assert codec.decode_page(b'{"items":[%b]}' % body).items == [claim]
    assert codec.decode_event(b'{"type":"ADDED","object":%b}' % body).object == claim


def test_objects_have_their_types() -> None:
    assert type(PODS.codec.decode(msgspec.json.encode(POD))) is Pod
    assert type(RESOURCE_CLAIMS.codec.decode(msgspec.json.encode(CLAIM))) is ResourceClaim
    raw = RESOURCE_CLAIMS.as_raw().codec.decode(msgspec.json.encode(CLAIM | {"new": 1}))
    assert type(raw) is RawObject
    assert raw.data["new"] == 1


def test_a_hub_object_is_written_in_the_version_that_is_asked_for() -> None:
    older = RESOURCE_CLAIMS.in_version("v1beta1")
    claim = RESOURCE_CLAIMS.codec.decode(msgspec.json.encode(CLAIM))

    written = msgspec.json.decode(older.codec.encode(claim))

    assert written["apiVersion"] == "resource.k8s.io/v1beta1"
    assert written["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"
    assert older.codec.decode(older.codec.encode(claim)) == claim
    assert (
        older.collection_path("ns") == "/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims"
    )
    assert EVENTS.in_version("v1beta1").api_version == "events.k8s.io/v1beta1"
    assert RESOURCE_SLICES.collection_path("ignored") == "/apis/resource.k8s.io/v1/resourceslices"


def test_resources_are_all_different() -> None:
    stored = [kind for kind in KINDS if kind.is_stored]
    assert len({resource.collection_path() for resource in RESOURCES}) == len(stored)
    assert len(RESOURCES) == len(stored)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_put_together_whatever_the_pieces(size: int) -> None:
    text = b"one\ntwo\n\nthree\nrest"
    lines = Lines()

    found = [
        line
        for start in range(0, len(text), size)
        for line in lines.feed(text[start : start + size])
    ]

    assert found == [b"one", b"two", b"three"]
    assert lines.feed(b"\n") == [b"rest"]


MANAGED = [
    {
        "manager": "m",
        "fieldsV1": {"f:spec": {'k:{"name":"a"}': {".": {}}, "f:x,": {}, 'v:"}"': {}}},
    }
]


def _with_metadata(metadata: dict[str, Any], **rest: Any) -> bytes:
    return line("ADDED", {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **rest})


@BOTH
def test_managed_fields_are_left_out_before_they_are_read(
    resource: Resource[Any], document: dict[str, Any]
) -> None:
    metadata = {**document["metadata"], "managedFields": MANAGED}
    shown = {**document, "metadata": metadata}
    shown.setdefault("status", {})
    event = line("ADDED", {"kind": "K", "apiVersion": "v1"} | shown)

    bare = resource.codec.decode_bare_event(event)

    assert b"managedFields" not in line_without_managed_fields(event)
    assert b"managedFields" in event
    bare_document = {**shown, "metadata": document["metadata"]}
    assert bare == resource.codec.decode_event(
        line("ADDED", {"kind": "K", "apiVersion": "v1"} | bare_document)
    )


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(_with_metadata({"name": "p"}, spec={}), id="none"),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": MANAGED, "uid": "u"}, spec={}),
            id="not-last",
        ),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": MANAGED, "finalizers": ["a"]}, spec={}),
            id="a-list-is-last",
        ),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": [{"f": ["x"]}]}, spec={}), id="list-in-it"
        ),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": [{"f": "[]},"}]}, spec={}), id="brackets"
        ),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": [{"f": ']},"spec":'}]}, spec={}),
            id="text-like-the-end",
        ),
        pytest.param(
            _with_metadata({"name": "p", "managedFields": MANAGED}, status={}), id="no-spec"
        ),
        pytest.param(
            _with_metadata(
                {"name": "p"},
                spec={"template": {"metadata": {"a": "", "managedFields": MANAGED}, "spec": {}}},
            ),
            id="those-of-a-template",
        ),
        pytest.param(
            _with_metadata({"a": [{"b": 1, "managedFields": MANAGED, "c": 2}]}, spec={}),
            id="in-a-list",
        ),
        pytest.param(
            _with_metadata(
                {"name": "p"},
                status={"devices": [{"data": {"a": {"b": 1, "managedFields": []}, "spec": 1}}]},
                spec={},
            ),
            id="those-of-a-driver-in-the-status",
        ),
    ],
)
def test_managed_fields_that_are_unusual_are_left_in(event: bytes) -> None:
    assert line_without_managed_fields(event) == event


@given(
    metadata=st.dictionaries(
        st.sampled_from(["name", "labels", "managedFields", "finalizers"]),
        st.recursive(
            st.sampled_from(["a", "]", "[", '"', '"spec":', "]},"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["f:a", "]", "managedFields"]), inner, max_size=2)
            ),
            max_leaves=5,
        ),
    )
)
def test_nothing_else_is_left_out(metadata: dict[str, Any]) -> None:
    event = _with_metadata(metadata, spec={"a": 1}, status={})
    left = msgspec.json.decode(line_without_managed_fields(event))

    whole = msgspec.json.decode(event)
    if left != whole:
        del whole["object"]["metadata"]["managedFields"]
    assert left == whole


def test_managed_fields_are_removed_in_place() -> None:
    entry = {"manager": "m", "operation": "Update"}
    raw = RawObject({"kind": "Pod", "metadata": {"name": "a", "managedFields": [entry]}})
    typed = ResourceClaim(metadata=ObjectMeta(name="a", managed_fields=(entry,)))
    for _again in range(2):
        strip_managed_fields(raw)
        strip_managed_fields(typed)
        strip_managed_fields(None)
        assert raw.data == {"kind": "Pod", "metadata": {"name": "a"}}
        assert typed == ResourceClaim(metadata=ObjectMeta(name="a"))


@pytest.mark.parametrize("spec_comes_first", [False, True])
def test_bare_events_have_no_managed_fields(spec_comes_first: bool) -> None:
    metadata = {"name": "a", "resourceVersion": "1", "managedFields": MANAGED}
    parts = {"metadata": metadata, "spec": {}}
    document = dict(reversed(parts.items())) if spec_comes_first else parts
    for resource in (PODS, NODES):
        event = resource.codec.decode_bare_event(line("ADDED", document))
        assert event.object is not None
        assert "managedFields" not in event.object.data["metadata"]
    claim = RESOURCE_CLAIMS.codec.decode_bare_event(line("ADDED", document)).object
    assert claim is not None
    assert not claim.metadata.managed_fields
