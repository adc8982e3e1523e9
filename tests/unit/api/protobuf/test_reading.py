"""Protobuf as others may write it, and bytes that are not protobuf at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allot.api.claims import ResourceClaim
from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import (
    FrameReader,
    decode_document,
    encode_document,
    has_protobuf,
    in_envelope,
    open_envelope,
    target_of,
    watch_event,
)
from allot.api.protobuf.reading import read
from allot.api.protobuf.targets import Target
from allot.api.protobuf.wire import ProtobufError, delimited, encode_varint
from allot.api.protobuf.writing import write
from allot.api.scheme import encode_object
from allot.api.slices import ResourceSlice

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
POD = GroupVersionKind("", "v1", "Pod")
CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")


def read_message(content: bytes, name: str) -> Any:
    return read(content, Target(name))


def test_negative_numbers_are_written_in_ten_bytes() -> None:
    document = {"value": -7, "description": ""}
    content = write(document, Target("scheduling.v1.PriorityClass"))

    assert b"\x10" + b"\xf9" + b"\xff" * 8 + b"\x01" in content
    assert read_message(content, "scheduling.v1.PriorityClass")["value"] == -7


def test_negative_numbers_of_32_bits_are_read_in_five_bytes_too() -> None:
    assert read_message(b"\x10\xf9\xff\xff\xff\x0f", "scheduling.v1.PriorityClass")["value"] == -7


def test_fields_may_come_in_any_order_and_the_last_one_counts() -> None:
    content = (
        delimited(3, b"image-2") + delimited(2, b"image") + delimited(1, b"a") + delimited(1, b"b")
    )

    container = read_message(content, "core.v1.Container")

    assert (container["name"], container["image"]) == ("b", "image")


def test_unknown_fields_of_all_wire_types_are_skipped() -> None:
    unknown = b"".join(
        (
            encode_varint(1000 << 3) + b"\x05",
            encode_varint(1001 << 3 | 1) + bytes(8),
            delimited(1002, b"text"),
            encode_varint(1003 << 3 | 5) + bytes(4),
            encode_varint(1004 << 3 | 3) + b"\x08\x01" + encode_varint(1004 << 3 | 4),
        )
    )
    content = unknown + delimited(1, delimited(1, b"name")) + unknown

    assert read_message(content, "core.v1.ConfigMap") == {"metadata": {"name": "name"}}


def test_packed_numbers_are_read_like_others() -> None:
    packed = delimited(4, encode_varint(1) + encode_varint(2**64 - 5) + encode_varint(300))
    single = b"\x20\x07"

    context = read_message(packed + single, "core.v1.PodSecurityContext")

    assert context["supplementalGroups"] == [1, -5, 300, 7]


def test_entries_of_maps_may_lack_key_or_value() -> None:
    content = (
        delimited(2, b"") + delimited(2, delimited(1, b"k")) + delimited(2, delimited(2, b"v"))
    )

    assert read_message(content, "core.v1.ConfigMap")["data"] == {"": "v", "k": ""}


def test_missing_messages_are_read_as_empty_ones() -> None:
    assert read_message(b"", "core.v1.Pod") == {
        "metadata": {},
        "spec": {},
        "status": {},
    }


def test_overlong_tags_are_read() -> None:
    assert read_message(b"\x8a\x00" + delimited(1, b"x")[1:], "core.v1.Container")["name"] == "x"


WRONG = {
    "cut off in a string": (b"\x0a\x7fabc", "unexpected EOF"),
    "cut off in a length": (b"\x0a", "unexpected EOF"),
    "cut off in a long length": (b"\x0a\xff", "unexpected EOF"),
    "an enormous length": (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "unexpected EOF"),
    "cut off in a message in a message": (delimited(1, b"\x0a\x05abc"), "unexpected EOF"),
    "a number that does not end": (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
    "tag zero": (b"\x00\x01", "proto: illegal tag 0 (wire type 0)"),
    "a wire type that does not exist": (b"\x57\x01", "proto: illegal wireType 7"),
    "the end of a group that did not begin": (b"\x54", "proto: unexpected end of group"),
    "a known field of another type": (b"\x08\x01", "proto: wrong wireType = 0 for field 1"),
    "text that is not UTF-8": (delimited(1, delimited(1, b"\xff\xfe")), "invalid UTF-8"),
    "groups in groups": (encode_varint(99 << 3 | 3) * 200, "nested too deeply"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_bytes_are_refused_with_a_reason(case: str) -> None:
    content, message = WRONG[case]
    with pytest.raises(ProtobufError) as refused:
        read(content, target_of(CONFIG_MAP))
    assert message in str(refused.value)


def test_messages_with_too_many_parts_are_refused() -> None:
    with pytest.raises(ProtobufError, match="more than 150000 parts"):
        read(delimited(2, b"\x12\x00" * 200_000), target_of(POD))


def test_unknown_fields_count_as_parts() -> None:
    with pytest.raises(ProtobufError, match="more than 150000 parts"):
        read(b"\xf8\x3e\x01" * 200_000, target_of(POD))


def test_schemas_nested_too_deeply_are_refused() -> None:
    content = b""
    for _ in range(5_000):
        content = delimited(25, content)  # not

    with pytest.raises(ProtobufError, match="nested too deeply"):
        read_message(content, "apiextensions.v1.JSONSchemaProps")


@pytest.mark.parametrize("text", [b"x", b"1Zi", b"1e9999"])
def test_quantities_must_be_quantities(text: bytes) -> None:
    entry = delimited(1, b"cpu") + delimited(2, delimited(1, text))
    with pytest.raises(ProtobufError, match=r"quantit|parse"):
        read_message(delimited(1, entry), "core.v1.ResourceRequirements")


def test_opaque_parameters_must_be_json() -> None:
    content = delimited(1, b"driver") + delimited(2, delimited(1, b"{not json"))
    device_class = delimited(2, delimited(2, delimited(1, delimited(1, content))))
    gvk = GroupVersionKind("resource.k8s.io", "v1", "DeviceClass")
    from allot.api.classes import DeviceClass

    for target in (target_of(gvk), target_of(gvk, DeviceClass)):
        with pytest.raises(ProtobufError, match="json"):
            read(device_class, target)


def test_parameters_without_content_are_null_in_json() -> None:
    opaque = delimited(1, b"gpu.example.com") + delimited(2, b"")
    config = delimited(3, delimited(2, delimited(1, opaque)))
    claim = read(delimited(2, delimited(1, config)), target_of(CLAIM, ResourceClaim))

    shown = msgspec.json.decode(encode_object(claim, CLAIM))["spec"]["devices"]["config"][0]

    assert shown == {"opaque": {"driver": "gpu.example.com", "parameters": None}}


def test_times_out_of_range_are_refused() -> None:
    time = b"\x08" + encode_varint(2**62)
    with pytest.raises(ProtobufError, match="out of range"):
        read_message(delimited(8, time), "meta.v1.ObjectMeta")


def test_a_part_that_is_remembered_is_read_the_same() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"a": {"string": "x"}},
        "capacity": {"m": {"value": "1Ki"}},
    }
    document = {"spec": {"driver": "d", "pool": {"name": "p"}, "devices": [device, device]}}
    content = write(document, target_of(SLICE))
    target = target_of(SLICE, ResourceSlice)

    first, second = read(content, target), read(content, target)

    assert first == second
    assert write(second, target) == content


def test_equal_quantities_are_written_as_they_were() -> None:
    def slice_with(text: str) -> bytes:
        device = {"name": "gpu-0", "capacity": {"memory": {"value": text}}}
        content = write({"spec": {"devices": [device]}}, target_of(SLICE))
        target = target_of(SLICE, ResourceSlice)
        return write(read(content, target), target)

    assert b"1Ki" in slice_with("1Ki")
    assert b"1024" in slice_with("1024")


# --- envelopes and frames ---


def test_envelopes() -> None:
    body = encode_document({"metadata": {"name": "x"}}, CONFIG_MAP)

    assert body.startswith(b"k8s\0")
    assert open_envelope(body).gvk == CONFIG_MAP
    assert decode_document(body) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "x"},
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty data"),
        (b"{}", "expected prefix [107 56 115 0]"),
        (b"k8s", "expected prefix"),
        (b"k8s\0\xff\xff", "unexpected EOF"),
        (b"k8s\0\x0a\x7f", "unexpected EOF"),
        (b"k8s\0\x08\x01", "wrong wireType"),
        (in_envelope(b"", "v1", "Nope"), 'kind "Nope"'),
        (in_envelope(b"", "example.com/v1", "Widget"), 'version "example.com/v1"'),
    ],
)
def test_what_is_no_envelope_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(ProtobufError) as refused:
        decode_document(body)
    assert message in str(refused.value)


def test_kinds_of_meta_belong_to_every_group() -> None:
    assert has_protobuf(GroupVersionKind("policy", "v1", "DeleteOptions"))
    assert has_protobuf(GroupVersionKind("meta.k8s.io", "v1beta1", "PartialObjectMetadata"))
    assert not has_protobuf(GroupVersionKind("meta.k8s.io", "v1", "Table"))
    assert not has_protobuf(GroupVersionKind("", "v1", "PodSpec"))


def test_frames_are_found_however_they_are_divided() -> None:
    bodies = [encode_document({"metadata": {"name": str(n)}}, CONFIG_MAP) for n in range(3)]
    data = b"".join(watch_event("ADDED", body) for body in bodies)
    reader = FrameReader()

    events = [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]

    assert [event.body for event in events] == bodies


def test_frames_that_are_too_long_are_refused() -> None:
    with pytest.raises(ProtobufError, match="too long"):
        list(FrameReader(max_frame=100).feed(b"\0\0\0\x65"))
