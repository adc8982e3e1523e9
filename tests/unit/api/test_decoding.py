"""Decoding: what Go clients send, what is wrong with what others send, and what would be ignored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from allot.api.claims import ResourceClaim
from allot.api.decoding import DecodeError, Shape, decode, fields_of, go_time_problem
from allot.api.identities import GroupVersionKind
from allot.api.json_limits import is_too_deep
from allot.api.quantity import Quantity
from allot.api.resource import GROUP
from allot.api.scheme import KINDS, decode_object, lookup
from allot.api.slices import ResourceSlice
from allot.api.strictness import strict_issues
from allot.cli.vectors import NOW


def body(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def test_null_is_absent() -> None:
    claim = decode(
        body(
            {
                "metadata": {"name": "c", "creationTimestamp": None, "labels": None},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": None}]}},
                "status": None,
            }
        ),
        ResourceClaim,
        "v1",
    )

    assert claim.metadata.name == "c"
    assert claim.spec.devices.requests[0].exactly is None


def test_null_document_is_an_empty_object() -> None:
    assert decode(b" null ", ResourceClaim, "v1") == ResourceClaim()


def test_null_items_are_empty_ones() -> None:
    slice_ = decode(
        body(
            {
                "spec": {
                    "devices": [None, {"name": "d", "capacity": {"m": None, "n": {"value": None}}}]
                }
            }
        ),
        ResourceSlice,
        "v1",
    )

    assert slice_.spec.devices is not None
    assert slice_.spec.devices[0].name == ""
    assert slice_.spec.devices[1].capacity["n"].value == Quantity.of(0)


def test_irregular_names() -> None:
    claim = decode(
        body({"status": {"devices": [{"driver": "d", "shareID": "x"}]}}), ResourceClaim, "v1"
    )

    assert claim.status.devices[0].share_id == "x"


def test_opaque_parameters_keep_their_bytes() -> None:
    parameters = b'{ "b" : 1.0e+2,\n "a":[ ] , "a":2 }'
    document = (
        b'{"status":null,"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":'
        + parameters
        + b"}}]}}}"
    )

    claim = decode(document, ResourceClaim, "v1")

    opaque = claim.spec.devices.config[0].opaque
    assert opaque is not None
    assert bytes(opaque.parameters) == parameters


@pytest.mark.parametrize(
    ("document", "message", "field"),
    [
        pytest.param(
            {"spec": {"devices": {"requests": [{}, {"exactly": {"count": 1.5}}]}}},
            "json: cannot unmarshal number 1.5 into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.count of type int64",
            "spec.devices.requests[1].exactly.count",
            id="fraction-for-integer",
        ),
        pytest.param(
            {"spec": {"devices": {"requests": {}}}},
            "json: cannot unmarshal object into Go struct field "
            "DeviceClaim.spec.devices.requests of type []v1.DeviceRequest",
            "spec.devices.requests",
            id="object-for-list",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.labels of type string",
            "metadata.labels[a]",
            id="number-for-label",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": '
            'cannot parse "yesterday" as "2006"',
            "metadata.creationTimestamp",
            id="not-a-time",
        ),
        pytest.param(
            [], "json: cannot unmarshal array into Go value of type v1.ResourceClaim", "", id="list"
        ),
    ],
)
def test_what_is_wrong(document: Any, message: str, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(body(document), ResourceClaim, "v1")

    assert (str(caught.value), caught.value.field) == (message, field)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a":',
        b"\xff\xfe",
        b"nul",
        b'{"a":1}}',
        b"[" * 100_000,
        b'{"metadata":' * 50_000,
    ],
)
def test_what_is_not_json(text: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(text, ResourceClaim, "v1")


def test_unknown_and_duplicate_fields() -> None:
    document = (
        b'{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","foo":1,'
        b'"spec":{"devices":{"requests":[{"name":"a","name":"b","exactly":{"bar":1}}],'
        b'"config":[{"opaque":{"parameters":{"a":1,"a":2}}}]}}}'
    )

    issues = [str(issue) for issue in strict_issues(document, ResourceClaim)]

    assert issues == [
        'unknown field "foo"',
        'duplicate field "spec.devices.requests[0].name"',
        'unknown field "spec.devices.requests[0].exactly.bar"',
    ]


def test_a_duplicate_field_is_reported_once() -> None:
    document = b'{"foo":1,"foo":2,"metadata":{},"metadata":{},"metadata":{}}'

    issues = [str(issue) for issue in strict_issues(document, ResourceClaim)]

    assert issues == ['unknown field "foo"', 'duplicate field "metadata"']


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2026-1-1", ' as "2006-01-02T15:04:05Z07:00": cannot parse "1-1" as "01"'),
        ("2026-01-01T00:00:00", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2026-13-01T00:00:00Z", ": month out of range"),
        ("2026-02-30T00:00:00.5Z", ": day out of range"),
    ],
)
def test_what_go_says_about_times(text: str, problem: str) -> None:
    assert go_time_problem(text) == problem


def test_times_at_the_end_of_time() -> None:
    body_ = b'{"metadata":{"creationTimestamp":"9999-12-31T23:59:59.5-01:00"}}'

    claim = decode_object(body_, GroupVersionKind(GROUP, "v1", "ResourceClaim"), NOW)

    assert claim.metadata.creation_timestamp.isoformat() == "9999-12-31T23:59:59-01:00"


def test_numbers_for_quantities_keep_their_text() -> None:
    numbers = b'{"a":{"value":1e3},"b":{"value":0.0000001},"c":{"value":1.50},"d":{"value":7}}'
    slice_ = decode(
        b'{"spec":{"devices":[{"name":"d","capacity":' + numbers + b"}]}}", ResourceSlice, "v1"
    )

    assert slice_.spec.devices is not None
    capacity = slice_.spec.devices[0].capacity
    assert [str(item.value) for item in capacity.values()] == ["1e3", "100n", "1500m", "7"]


def test_unknown_fields_come_with_the_known_ones() -> None:
    document = body({"spec": {"devices": [{"capacity": {"a.b/c": {"valeu": "1"}}}]}})

    (issue,) = strict_issues(document, ResourceSlice)

    assert issue.known == ("value", "requestPolicy")


# --- wrong types at every field ---

VERSIONS = [
    GroupVersionKind(GROUP, version, kind.name)
    for kind in KINDS.values()
    for version in kind.versions
]
WRONG: list[Any] = [
    None,
    True,
    7,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "\x00\U0001f600",
    [],
    [None],
    [[]],
    {},
    {"a": {}},
]


def documents_with_one_wrong_field(cls: type[Struct]) -> Iterator[tuple[str, str, Any]]:
    """Path, expected kind and a document that reaches every field of a type once."""
    for wire, (_, shape) in fields_of(cls).items():
        yield wire, shape.kind, lambda value, wire=wire: {wire: value}
        yield from _inside(shape, wire)


def _inside(shape: Shape, wire: str) -> Iterator[tuple[str, str, Any]]:
    if shape.cls is not None:
        for path, kind, wrap in documents_with_one_wrong_field(shape.cls):
            yield f"{wire}.{path}", kind, lambda value, wrap=wrap: {wire: wrap(value)}
    elif shape.item is not None and shape.item.cls is not None:
        for path, kind, wrap in documents_with_one_wrong_field(shape.item.cls):
            if shape.kind == "list":
                yield f"{wire}[0].{path}", kind, lambda value, wrap=wrap: {wire: [wrap(value)]}
            else:
                yield f"{wire}[k].{path}", kind, lambda value, wrap=wrap: {wire: {"k": wrap(value)}}


def fits(kind: str, value: Any) -> bool:
    """Whether a value is of the kind a field has. What is in it is not looked at."""
    if value is None or kind in ("opaque", "any"):
        return True
    matches = {
        "struct": dict, "map": dict, "list": list, "string": str, "time": str, "bool": bool,
    }  # fmt: skip
    if kind in matches:
        return isinstance(value, matches[kind])
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number or (kind == "quantity" and isinstance(value, str | float))


def refused(document: bytes, gvk: GroupVersionKind) -> str | None:
    try:
        decode_object(document, gvk, NOW)
    except DecodeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("gvk", VERSIONS, ids=str)
def test_wrong_types_at_every_field(gvk: GroupVersionKind) -> None:
    _, version = lookup(gvk)
    fields = list(documents_with_one_wrong_field(version.cls))
    assert len(fields) > 15

    for path, kind, wrap in fields:
        for value in WRONG:
            refusal = refused(body(wrap(value)), gvk)
            assert refusal != "", f"{path} refused {value!r} without a word"
            assert refusal or fits(kind, value), f"{path} took {value!r}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"{}", False, id="flat"),
        pytest.param(b"[" * 200 + b"]" * 200, False, id="as-deep-as-allowed"),
        pytest.param(b"[" * 201 + b"]" * 201, True, id="one-deeper"),
        pytest.param(b'{"a":' * 300 + b"1" + b"}" * 300, True, id="objects"),
        pytest.param(b'{"a":"' + b"[" * 5000 + b'"}', False, id="brackets-in-a-text"),
        pytest.param(b'{"a":"\\"' + b"{" * 5000 + b'"}', False, id="behind-an-escaped-quote"),
        pytest.param(b'{"a":"]","b":' + b"[" * 300 + b"]" * 300 + b"}", True, id="both"),
        pytest.param(b"[" * 100_000, True, id="never-closed"),
        pytest.param(b"[" + b"[],[[]]," * 5000 + b"1]", False, id="wide"),
    ],
)
def test_nesting_is_bounded(body: bytes, expected: bool) -> None:
    assert is_too_deep(body) is expected
