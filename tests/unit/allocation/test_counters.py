"""Compatibility groups of a counter set."""

from __future__ import annotations

import pytest

from allot.allocation.devices import NOTHING_IN_COMMON, common_groups

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("placed", "own", "common"),
    [
        pytest.param(None, {"a"}, {"a"}, id="first"),
        pytest.param(None, NONE, NONE, id="first-without-groups"),
        pytest.param({"a", "b"}, {"b", "c"}, {"b"}, id="one-in-common"),
        pytest.param(NONE, NONE, NONE, id="no-groups-at-all"),
        pytest.param({"a"}, {"b"}, NOTHING_IN_COMMON, id="disjoint"),
        pytest.param({"a"}, NONE, NOTHING_IN_COMMON, id="without-groups-beside-groups"),
        pytest.param(NOTHING_IN_COMMON, NONE, NOTHING_IN_COMMON, id="stays-disjoint"),
        pytest.param(NOTHING_IN_COMMON, {"a"}, NOTHING_IN_COMMON, id="stays-disjoint-with-groups"),
    ],
)
def test_common_groups(
    placed: frozenset[str] | None, own: frozenset[str], common: frozenset[str]
) -> None:
    """Disjoint groups are not the same as no groups: a device without groups does not go with them."""
    found = common_groups(None if placed is None else frozenset(placed), frozenset(own))

    assert found == common
    if common == NOTHING_IN_COMMON:
        assert found
        assert found.isdisjoint(own)
