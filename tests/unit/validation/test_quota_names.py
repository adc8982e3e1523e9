"""Quotas that count things have no fractions."""

from __future__ import annotations

import pytest

from allot.api.raw import RawObject
from allot.validation.resource_quota import validate_quota


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("pods", False),
        ("services.nodeports", False),
        ("count/resourceclaims.resource.k8s.io", False),
        ("gpu.deviceclass.resource.k8s.io/devices", False),
        ("cpu", True),
        ("requests.storage", True),
        ("requests.example.com/gpu", True),
    ],
)
def test_half_of_a_thing(name: str, allowed: bool) -> None:
    quota = RawObject({"metadata": {"name": "q"}, "spec": {"hard": {name: "500m"}}})

    wrong = [str(error.path) for error in validate_quota(quota)]

    assert wrong == ([] if allowed else [f"spec.hard[{name}]"])
