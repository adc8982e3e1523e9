"""Fields behind feature gates: dropped while the gate is off, kept where they are in use."""

from __future__ import annotations

import pytest

from allot.apiserver.kinds.gated_fields import GatedFields, drop_disabled_fields
from allot.features import FeatureGates

Part = frozenset[str]
TABLE: tuple[GatedFields[Part, Part], ...] = (
    GatedFields(("A", "B"), lambda stored: "ab" in stored, lambda part: part - {"ab"}),
    GatedFields(
        ("C",), lambda stored: "c" in stored, lambda part: part - {"c"}, rejected_by="RejectC"
    ),
)


@pytest.mark.parametrize(
    ("gates", "stored", "kept"),
    [
        pytest.param((), None, set(), id="gates-off"),
        pytest.param(("A",), None, set(), id="one-of-two-gates"),
        pytest.param(("A", "B"), None, {"ab"}, id="gates-on"),
        pytest.param((), {"ab"}, {"ab"}, id="in-use"),
        pytest.param(("RejectC",), None, {"c"}, id="rejected-by-validation"),
    ],
)
def test_fields_of_disabled_features_are_dropped(
    gates: tuple[str, ...], stored: set[str] | None, kept: set[str]
) -> None:
    old = None if stored is None else frozenset(stored)

    left = drop_disabled_fields(frozenset({"ab", "c"}), old, FeatureGates(gates), TABLE)

    assert left == kept


def test_a_part_without_the_fields_is_not_copied() -> None:
    table = (GatedFields[Part, Part](("A",), bool, set, is_present=lambda part: "a" in part),)  # type: ignore[arg-type]
    part = frozenset({"b"})

    assert drop_disabled_fields(part, None, FeatureGates(()), table) is part
