from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.api.identities import GroupVersionKind
from allot.apiserver.kinds.resources import find_kind
from allot.apiserver.printers.ages import human_age
from allot.testing.builders import a_slice

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(minutes=3, seconds=20), "3m20s"),
        (timedelta(minutes=10, seconds=20), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=5), "7h5m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=3), "2d3h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=3000), "8y"),
    ],
)
def test_human_age(ago: timedelta, text: str) -> None:
    assert human_age(NOW - ago, NOW) == text


def test_unknown_age() -> None:
    assert human_age(None, NOW) == "<unknown>"


def test_a_row_has_a_cell_per_column() -> None:
    slices = find_kind(GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice"))
    assert slices is not None
    row = slices.table.row(a_slice(), lambda time: human_age(time, NOW))

    assert row == ["slice", "node-1", "gpu.example.com", "node-1", "<unknown>"]
    assert len(row) == len(slices.table.columns)
