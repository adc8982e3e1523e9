"""Which unknown names are taken for typos of known ones."""

from __future__ import annotations

import pytest

from allot.lint.spelling import close_names, did_you_mean, edit_distance, only_typo

CLASSES = ["gpu.example.com", "nic.example.com", "rdma.example.com"]


@pytest.mark.parametrize(
    ("written", "known", "close"),
    [
        pytest.param("gup.example.com", CLASSES, ["gpu.example.com"], id="swapped"),
        pytest.param("gpu.exmaple.com", CLASSES, ["gpu.example.com"], id="swapped-in-the-domain"),
        pytest.param("gpus.example.com", CLASSES, ["gpu.example.com"], id="one-more"),
        pytest.param("cpu.example.com", CLASSES, [], id="another-short-word"),
        pytest.param("fabric.example.com", CLASSES, [], id="another-word"),
        pytest.param("deviceclassname", ["deviceClassName"], ["deviceClassName"], id="case"),
        pytest.param("cuont", ["count", "capacity"], ["count"], id="field"),
        pytest.param("x", ["y"], [], id="one-letter"),
        pytest.param("gpu", ["gpu"], [], id="the-same"),
    ],
)
def test_close_names(written: str, known: list[str], close: list[str]) -> None:
    assert close_names(written, known) == close


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        pytest.param("one-gpuu", ["one-gpu"], "one-gpu", id="slip"),
        pytest.param("gpu-2", ["gpu-1"], None, id="number"),
        pytest.param("pool-b", ["pool-a"], None, id="letter"),
        pytest.param("trainng", ["training", "trainning"], None, id="two-candidates"),
    ],
)
def test_only_typos_are_corrected(written: str, known: list[str], meant: str | None) -> None:
    assert only_typo(written, known) == meant


def test_suggestions() -> None:
    assert did_you_mean("trainng", ["training", "trainings"]) == (
        '; did you mean "training" or "trainings"?'
    )
    assert did_you_mean("x", ["training"]) == ""


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("kitten", "sitting", 3)],
)
def test_edit_distance(a: str, b: str, distance: int) -> None:
    assert edit_distance(a, b) == edit_distance(b, a) == distance
