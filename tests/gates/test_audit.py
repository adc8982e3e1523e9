"""The account that all stories keep of who holds what."""

from __future__ import annotations

from typing import Any

import pytest

from allot.testing.manifests import a_claim_manifest, a_slice_manifest
from tests.gates.story import SKEWS, Json, Off, check_holders, name_of

SHARED = {"name": "d", "capacity": {"bandwidth": {"value": "10G"}}}


def allocated(name: str, **rest: Any) -> Json:
    result = {"request": "r", "driver": "x.example.com", "pool": "p", "device": "d", **rest}
    return a_claim_manifest(name=name, status={"allocation": {"devices": {"results": [result]}}})


def slice_of(device: Json) -> Json:
    return a_slice_manifest(device, driver="x.example.com", pool={"name": "p"})


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([allocated("a"), allocated("b")], id="given-twice"),
        pytest.param([allocated("a"), allocated("b", shareID="1")], id="whole-and-share"),
        pytest.param([allocated("a", shareID="1"), allocated("b", shareID="1")], id="same-share"),
        pytest.param(
            [
                allocated("a", shareID="1", consumedCapacity={"bandwidth": "6G"}),
                allocated("b", shareID="2", consumedCapacity={"bandwidth": "5G"}),
            ],
            id="too-much",
        ),
    ],
)
def test_found(claims: list[Json]) -> None:
    with pytest.raises(AssertionError):
        check_holders(claims, [slice_of(SHARED)])


def test_all_is_well() -> None:
    shares = [
        allocated(str(number), shareID=str(number), consumedCapacity={"bandwidth": "5G"})
        for number in range(2)
    ]
    check_holders(shares, [slice_of(SHARED)])
    check_holders([allocated("a")], [slice_of(SHARED)])
    check_holders([], [])


def test_skews() -> None:
    assert len(SKEWS) == 6
    assert Off.ALL not in SKEWS
    assert name_of(Off.SERVER | Off.SCHEDULER) == "server+scheduler-off"
