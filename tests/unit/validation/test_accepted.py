"""Texts that a rule is known to accept."""

from __future__ import annotations

from allot.validation.accepted import MAX_ACCEPTED, Accepted


def test_what_the_rule_accepts_is_known_afterwards() -> None:
    words = Accepted[str](str.islower, 10)

    assert "a" not in words
    assert words.accepts("a")
    assert "a" in words


def test_what_the_rule_refuses_is_asked_every_time() -> None:
    words = Accepted[str](str.islower, 10)

    assert not words.accepts("A")
    assert "A" not in words


def test_pairs_are_known_as_pairs() -> None:
    pairs = Accepted[tuple[str, str]](lambda first, second: first < second, 10)

    assert pairs.accepts("a", "b")
    assert not pairs.accepts("b", "a")
    assert {"a": "b"}.items() <= pairs


def test_long_texts_are_not_kept() -> None:
    pairs = Accepted[tuple[str, str]](lambda *_: True, 3)

    assert pairs.accepts("aa", "bb")
    assert not pairs


def test_too_many_are_forgotten() -> None:
    words = Accepted[str](lambda _: True, 10)
    for number in range(MAX_ACCEPTED + 1):
        words.accepts(f"{number}")

    assert words == {f"{MAX_ACCEPTED}"}
