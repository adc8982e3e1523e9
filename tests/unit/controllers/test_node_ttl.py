"""How long kubelets may cache secrets, by the size of the cluster."""

from __future__ import annotations

import pytest

from allot.controllers.node_ttl import BOUNDARIES, next_step


@pytest.mark.parametrize(
    ("counts", "seconds"),
    [
        pytest.param([1], 0, id="small"),
        pytest.param([*range(1, 102)], 15, id="grows"),
        pytest.param([*range(1, 102), *range(100, 89, -1)], 15, id="shrinks-a-little"),
        pytest.param([*range(1, 102), *range(100, 88, -1)], 0, id="shrinks"),
        pytest.param([*range(1, 502)], 30, id="large"),
    ],
)
def test_seconds(counts: list[int], seconds: int) -> None:
    step = 0
    for count in counts:
        step = next_step(step, count)

    assert BOUNDARIES[step].seconds == seconds
