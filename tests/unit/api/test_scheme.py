from __future__ import annotations

import json

import pytest

from allot.api.base import replace
from allot.api.claims import AllocatedDeviceStatus, ResourceClaim, ResourceClaimStatus
from allot.api.identities import GroupVersionKind
from allot.api.resource import GROUP
from allot.api.scheme import (
    KINDS,
    UnknownKindError,
    decode_canonical,
    decode_object,
    encode_object,
    lookup,
)
from allot.cli.vectors import NOW
from allot.testing.builders import a_claim, a_device, a_slice

CLAIM = GroupVersionKind(GROUP, "v1", "ResourceClaim")


def test_type_meta_comes_first() -> None:
    body = encode_object(a_claim(), CLAIM)

    assert body.startswith(b'{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":')
    assert decode_object(body, CLAIM, NOW) == a_claim()


def test_empty_lists_that_go_writes_as_null() -> None:
    claim = ResourceClaim(status=ResourceClaimStatus(devices=(AllocatedDeviceStatus(driver="d"),)))

    document = json.loads(encode_object(claim, CLAIM))

    assert document["spec"] == {"devices": {"requests": None}}
    assert document["status"]["devices"][0]["conditions"] is None


def test_opaque_bytes_survive_next_to_null_lists() -> None:
    body = (
        b'{"metadata":{"name":"c"},"spec":{"devices":{"config":[{"opaque":{"driver":"d",'
        b'"parameters":{"x": 1.50}}}]}}}'
    )

    assert b'{"x": 1.50}' in encode_object(decode_object(body, CLAIM, NOW), CLAIM)


def test_taints_get_the_time_of_the_request() -> None:
    body = json.dumps({"spec": {"devices": [{"name": "d", "taints": [{"key": "k"}]}]}}).encode()

    slice_ = decode_object(body, GroupVersionKind(GROUP, "v1beta2", "ResourceSlice"), NOW)

    assert slice_.spec.devices[0].taints[0].time_added == NOW


def test_times_are_utc_and_lose_their_fractions() -> None:
    body = b'{"metadata":{"name":"c","creationTimestamp":"2026-01-01T01:00:00.75+01:00"}}'

    written = encode_object(decode_object(body, CLAIM, NOW), CLAIM)

    assert b'"creationTimestamp":"2026-01-01T00:00:00Z"' in written


def test_device_shape_of_v1beta1() -> None:
    body = encode_object(
        a_slice(a_device(attributes={"model": "a"})),
        GroupVersionKind(GROUP, "v1beta1", "ResourceSlice"),
    )

    assert json.loads(body)["spec"]["devices"] == [
        {"name": "gpu-0", "basic": {"attributes": {"model": {"string": "a"}}}}
    ]


@pytest.mark.parametrize(
    "gvk",
    [
        GroupVersionKind(GROUP, "v1alpha3", "ResourceClaim"),
        GroupVersionKind(GROUP, "v1", "Nope"),
        GroupVersionKind("apps", "v1", "ResourceClaim"),
    ],
)
def test_unknown_kinds(gvk: GroupVersionKind) -> None:
    with pytest.raises(UnknownKindError, match="no kind"):
        lookup(gvk)


def test_names_of_kinds() -> None:
    assert KINDS["ResourcePoolStatusRequest"].short_names == ("rpsr",)
    assert KINDS["DeviceClass"].singular == "deviceclass"
    assert str(CLAIM) == "resource.k8s.io/v1/ResourceClaim"
    assert replace(a_claim(), status=ResourceClaimStatus()) == a_claim()


def test_a_body_as_it_is_encoded_is_canonical() -> None:
    body = encode_object(a_claim(), CLAIM)

    assert decode_canonical(body, CLAIM, NOW) == (a_claim(), True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b'"metadata":{', b'"metadata":{"nam":"b",', id="unknown"),
        pytest.param(b'"metadata":{', b'"metadata":{"name":"b",', id="duplicate"),
        pytest.param(b'"metadata":{', b'"metadata": {', id="space"),
        pytest.param(b'"metadata":{', b'"kind":"Pod","metadata":{', id="another-kind"),
    ],
)
def test_any_other_body_is_not_canonical(old: bytes, new: bytes) -> None:
    body = encode_object(a_claim(), CLAIM).replace(old, new, 1)

    assert decode_canonical(body, CLAIM, NOW) == (decode_object(body, CLAIM, NOW), False)
