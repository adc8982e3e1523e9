"""Keys of objects and ids of allocated devices."""

from __future__ import annotations

import pytest

from allot.api.claims import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from allot.api.identities import DeviceId, ObjectKey, SharedDeviceId
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject, object_key


def test_key_of_typed_and_raw_objects() -> None:
    key = ObjectKey("ml", "train")
    document = {"metadata": {"namespace": "ml", "name": "train"}}

    assert ResourceClaim(metadata=ObjectMeta(name="train", namespace="ml")).key == key
    assert ObjectMeta(name="train", namespace="ml").key == key
    assert RawObject(document).key == object_key(document) == key


@pytest.mark.parametrize(
    "document",
    [{}, {"metadata": None}, {"metadata": {"namespace": None}}, {"metadata": {"name": ""}}],
)
def test_key_of_incomplete_object_is_empty(document: dict[str, object]) -> None:
    assert object_key(document) == ObjectKey("", "")


@pytest.mark.parametrize("share", [None, "s1"])
def test_id_of_allocated_device(share: str | None) -> None:
    result = DeviceRequestAllocationResult(
        request="gpu", driver="d", pool="p", device="gpu-0", share_id=share
    )
    status = AllocatedDeviceStatus(driver="d", pool="p", device="gpu-0", share_id=share)

    shared = SharedDeviceId("d", "p", "gpu-0", share or "")
    assert result.shared_device_id == status.shared_device_id == shared
    assert result.device_id == status.device_id == shared.device_id == DeviceId("d", "p", "gpu-0")
