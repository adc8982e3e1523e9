"""Speed, guarded by counting steps: the quick ways are taken where nothing is unusual."""

from __future__ import annotations

import pytest

from allot import features
from allot.api import decoding
from allot.api.identities import GroupVersionKind
from allot.api.quantity import Quantity
from allot.api.resource import GROUP
from allot.api.scheme import decode_object, encode_object
from allot.cli.vectors import NOW
from allot.testing.builders import a_device, a_slice
from allot.validation import device as device_rules
from allot.validation.context import Context
from allot.validation.names import is_qualified_name
from allot.validation.resource_slice import validate_slice

SLICE = GroupVersionKind(GROUP, "v1", "ResourceSlice")
DEVICES = [
    a_device(
        f"gpu-{number}",
        attributes={"model": "h100", "numa": number, "example.com/ok": True},
        capacity={"memory": "80Gi", "cores": "132"},
    )
    for number in range(128)
]


def test_a_quantity_is_parsed_once() -> None:
    assert Quantity.parse("80Gi") is Quantity.parse("80Gi")


def test_ordinary_objects_are_decoded_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    body = encode_object(a_slice(*DEVICES), SLICE)
    monkeypatch.delattr(decoding, "_Reader")

    assert decode_object(body, SLICE, NOW) == a_slice(*DEVICES)


def test_names_are_judged_once_and_sound_attributes_not_in_detail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_qualified_name.cache_clear()
    monkeypatch.delattr(device_rules, "_validate_attribute")

    assert list(validate_slice(a_slice(*DEVICES), Context(features.DEFAULTS))) == []

    assert is_qualified_name.cache_info().misses == 5
