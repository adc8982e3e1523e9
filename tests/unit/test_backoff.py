"""Backoff: the delay after failures."""

from __future__ import annotations

import pytest

from allot.backoff import Backoff


@pytest.mark.parametrize(
    ("backoff", "failures", "seconds"),
    [
        pytest.param(Backoff(1.0, 10.0), 0, 0.0, id="no-failure"),
        pytest.param(Backoff(1.0, 10.0), 1, 1.0, id="first"),
        pytest.param(Backoff(1.0, 10.0), 4, 8.0, id="doubled"),
        pytest.param(Backoff(1.0, 10.0), 5, 10.0, id="maximum"),
        pytest.param(Backoff(1.0, 10.0), 1_000_000, 10.0, id="many"),
        pytest.param(Backoff(1.0, 10.0, factor=3.0), 2, 3.0, id="factor"),
        pytest.param(Backoff(5.0, 3.0), 1, 3.0, id="maximum-below-the-first"),
        pytest.param(Backoff(1.0, 0.0), 5, 0.0, id="no-delay"),
    ],
)
def test_delay_after_failures(backoff: Backoff, failures: int, seconds: float) -> None:
    assert backoff.seconds(failures) == seconds


def test_jitter_shortens_the_delay() -> None:
    backoff = Backoff(4.0, 10.0, jitter=0.5)

    assert [backoff.seconds(1, chance) for chance in (0.0, 0.5, 1.0)] == [4.0, 3.0, 2.0]
