"""How much of a capacity a request consumes, by policy."""

from __future__ import annotations

import pytest

from allot.allocation.capacity import CapacityError, consumption
from allot.api.quantity import Quantity
from allot.api.slices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity

q = Quantity.parse


def a_range(least: str, most: str | None = None, step: str | None = None) -> CapacityRequestPolicy:
    limits = CapacityRequestPolicyRange(
        q(least), q(most) if most else None, q(step) if step else None
    )
    return CapacityRequestPolicy(default=q(least), valid_range=limits)


VALUES = CapacityRequestPolicy(default=q("1Gi"), valid_values=(q("1Gi"), q("4Gi")))


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        pytest.param(None, None, "80Gi", id="all-of-it-by-default"),
        pytest.param(None, "5Gi", "5Gi", id="as-requested-without-policy"),
        pytest.param(CapacityRequestPolicy(default=q("2Gi")), None, "2Gi", id="default"),
        pytest.param(a_range("2Gi"), "1Gi", "2Gi", id="at-least-min"),
        pytest.param(a_range("2Gi"), "2.5Gi", "2560Mi", id="no-step-no-rounding"),
        pytest.param(a_range("2Gi", "9Gi", "2Gi"), "5Gi", "6Gi", id="rounded-up-to-step"),
        pytest.param(a_range("2Gi", "9Gi", "2Gi"), "9Gi", None, id="beyond-max-after-rounding"),
        pytest.param(VALUES, "2Gi", "4Gi", id="next-valid-value"),
        pytest.param(VALUES, "5Gi", None, id="no-valid-value-large-enough"),
    ],
)
def test_consumption(
    policy: CapacityRequestPolicy | None, requested: str | None, consumed: str | None
) -> None:
    capacity = DeviceCapacity(q("80Gi"), policy)
    asked = {"memory": q(requested)} if requested else {}

    amounts = consumption([("memory", capacity)], asked, fractional=True)

    assert consumed == (str(amounts["memory"]) if amounts is not None else None)


def test_a_capacity_the_device_does_not_have_refuses_it() -> None:
    assert consumption([], {"memory": q("1")}, fractional=True) is None


@pytest.mark.parametrize(
    ("fractional", "consumed"),
    [pytest.param(True, "300m", id="on"), pytest.param(False, "1", id="off")],
)
def test_fractions_are_steps_only_with_the_feature(fractional: bool, consumed: str) -> None:
    capacity = DeviceCapacity(q("8"), a_range("200m", "2", "100m"))

    amounts = consumption([("cores", capacity)], {"cores": q("250m")}, fractional=fractional)

    assert amounts is not None
    assert str(amounts["cores"]) == consumed


@pytest.mark.parametrize(
    ("fractional", "requested", "problem"),
    [
        (True, "200100u", "request 200100u is not a representable milli value"),
        (
            True,
            "9223372036854775807m",
            "rounding request 9223372036854775807m up to the next step passes the milli-value range",
        ),
        (False, "9223372036854775808", "request 9223372036854775808 exceeds MaxInt64"),
    ],
)
def test_amounts_beyond_the_arithmetic_are_errors(
    fractional: bool, requested: str, problem: str
) -> None:
    capacity = DeviceCapacity(q("8"), a_range("200m", None, "100m"))

    with pytest.raises(CapacityError) as error:
        consumption([("cores", capacity)], {"cores": q(requested)}, fractional=fractional)

    assert str(error.value) == (
        'capacity "cores": capacity request cannot be represented in the device\'s range arithmetic: '
        + problem
    )
