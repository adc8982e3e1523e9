"""Suggestions for names that do not exist."""

from __future__ import annotations

import pytest

from allot.api.similar_names import did_you_mean, joined_with_or, similar_names

KNOWN = ("gpu.example.com", "gpus.example.com", "nic.acme.org")


def test_most_similar_name_is_first() -> None:
    assert similar_names("gpu.exmaple.com", KNOWN) == ("gpu.example.com", "gpus.example.com")
    assert similar_names("gpu.exmaple.com", KNOWN, limit=1) == ("gpu.example.com",)
    assert similar_names("tpu", KNOWN) == ()


def test_joined_names() -> None:
    assert [joined_with_or(names) for names in ((), "a", "ab", "abc")] == [
        "", "a", "a or b", "a, b or c",
    ]  # fmt: skip
    assert did_you_mean(("a", "b")) == "; did you mean a or b?"
    assert did_you_mean(()) == ""


CLASSES = ("gpu.example.com", "nic.example.com", "shared-nic.example.com", "fabric.example.com")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("gup.example.com", ("gpu.example.com",), id="swapped"),
        pytest.param("gpu.exmaple.com", ("gpu.example.com",), id="in-the-domain"),
        pytest.param("fabrik.example.com", ("fabric.example.com",), id="longer-word"),
        pytest.param("share-nic.example.com", ("shared-nic.example.com",), id="missing-letter"),
        pytest.param("cpu.example.com", (), id="another-short-word"),
        pytest.param("tpu.example.com", (), id="another-device"),
        pytest.param("rdma.example.com", (), id="only-the-domain-is-the-same"),
        pytest.param("fpga.example.com", (), id="other-label"),
    ],
)
def test_classes(written: str, meant: tuple[str, ...]) -> None:
    assert similar_names(written, CLASSES) == meant


def test_numbers_may_differ() -> None:
    assert similar_names("serve-3", ["server-2"]) == ("server-2",)
