"""Files of volumes that hide each other."""

from __future__ import annotations

from typing import Any

import pytest

from allot.validation.fields import FieldPath
from allot.validation.volume_paths import (
    MAX_OVERLAPS,
    overlap_warnings,
    validate_projected_paths,
)


def items(*paths: str) -> list[dict[str, str]]:
    return [{"key": "k", "path": path} for path in paths]


@pytest.mark.parametrize(
    ("paths", "pairs"),
    [
        pytest.param(["a", "b"], [], id="different"),
        pytest.param(["a", "a", "a"], [("a", "a")], id="equal-ones-once"),
        pytest.param(["a/b", "a"], [("a", "a/b")], id="a-directory-later"),
        pytest.param(["a", "a/b/c"], [("a/b/c", "a")], id="a-directory-first"),
        pytest.param(["ab", "a"], [], id="only-the-same-letters"),
        pytest.param(["a/", "a"], [("a", "a")], id="a-slash-at-the-end"),
    ],
)
def test_overlaps(paths: list[str], pairs: list[tuple[str, str]]) -> None:
    volume = {"name": "v", "configMap": {"name": "c", "items": items(*paths)}}
    place = 'volume "v" (ConfigMap "c"): overlapping paths:'

    expected = [f'{place} "{later}" with "{earlier}"' for later, earlier in pairs]
    assert list(overlap_warnings(volume)) == expected


def test_equal_paths_do_not_multiply() -> None:
    """Two thousand paths below one are two million pairs."""
    paths = ["a" + "/b" * (number % 50) for number in range(2_000)]
    volume = {"name": "v", "secret": {"secretName": "s", "items": items(*paths)}}

    assert len(list(overlap_warnings(volume))) <= MAX_OVERLAPS


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        pytest.param(
            [{"secret": {"name": "s", "items": items("a")}}, {"clusterTrustBundle": {"path": "a"}}],
            ["a"],
            id="a-bundle",
        ),
        pytest.param(
            [
                {"downwardAPI": {"items": items("a")}},
                {"secret": {"name": "s", "items": items("a")}},
            ],
            ["s"],
            id="a-secret",
        ),
        pytest.param(
            [
                {"secret": {"name": "s", "items": items("a")}},
                {"serviceAccountToken": {"path": "a"}},
            ],
            [],
            id="a-token",
        ),
    ],
)
def test_projected_files_are_written_once(sources: list[dict[str, Any]], shown: list[str]) -> None:
    errors = validate_projected_paths({"sources": sources}, FieldPath("projected"))

    assert [error.value for error in errors] == shown
