"""Suggestions for names that do not exist."""

from __future__ import annotations

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
