"""The account that all stories keep of who holds what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gates.story import SKEWS, Json, Off, check_holders, dra, name_of

SHARED = {"name": "d", "capacity": {"bandwidth": {"value": "10G"}}}


def a_claim(name: str, **rest: Any) -> Json:
    result = {"request": "r", "driver": "x.example.com", "pool": "p", "device": "d", **rest}
    allocation = {"devices": {"results": [result]}}
    return {**dra("ResourceClaim", name, {}), "status": {"allocation": allocation}}


def a_slice(device: Json) -> Json:
    spec = {"driver": "x.example.com", "pool": {"name": "p"}, "devices": [device]}
    return dra("ResourceSlice", "s", spec)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([a_claim("a"), a_claim("b")], id="given-twice"),
        pytest.param([a_claim("a"), a_claim("b", shareID="1")], id="whole-and-share"),
        pytest.param([a_claim("a", shareID="1"), a_claim("b", shareID="1")], id="same-share"),
        pytest.param(
            [
                a_claim("a", shareID="1", consumedCapacity={"bandwidth": "6G"}),
                a_claim("b", shareID="2", consumedCapacity={"bandwidth": "5G"}),
            ],
            id="too-much",
        ),
    ],
)
def test_found(claims: list[Json]) -> None:
    with pytest.raises(AssertionError):
        check_holders(claims, [a_slice(SHARED)])


def test_all_is_well() -> None:
    shares = [
        a_claim(str(number), shareID=str(number), consumedCapacity={"bandwidth": "5G"})
        for number in range(2)
    ]
    check_holders(shares, [a_slice(SHARED)])
    check_holders([a_claim("a")], [a_slice(SHARED)])
    check_holders([], [])


def test_skews() -> None:
    assert len(SKEWS) == 6
    assert Off.ALL not in SKEWS
    assert name_of(Off.SERVER | Off.SCHEDULER) == "server+scheduler-off"
