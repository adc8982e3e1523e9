"""Sums of amounts, and the peak of a pod's containers, as integers and as quantities."""

from __future__ import annotations

import pytest

from allot.api.amounts import add, is_sidecar, peak_of_containers, raise_to
from allot.api.quantity import Quantity
from tests.step_counts import steps


def test_add_sums_by_name() -> None:
    total = {"cpu": 1}

    add(total, {"cpu": 2, "memory": 3})

    assert total == {"cpu": 3, "memory": 3}


def test_raise_to_keeps_larger_amounts_and_names_zero() -> None:
    amounts = {"cpu": 4, "memory": 1}

    raise_to(amounts, {"cpu": 2, "memory": 3, "example.com/gpu": 0})

    assert amounts == {"cpu": 4, "memory": 3, "example.com/gpu": 0}


@pytest.mark.parametrize(
    ("containers", "init_containers", "peak"),
    [
        pytest.param([2, 3], [], 5, id="containers-run-together"),
        pytest.param([2, 3], [(False, 4)], 5, id="init-container-below-the-sum"),
        pytest.param([2], [(False, 4), (False, 6)], 6, id="init-containers-run-one-by-one"),
        pytest.param([2], [(True, 3)], 5, id="sidecar-runs-with-containers"),
        pytest.param([1], [(True, 3), (False, 4)], 7, id="init-container-beside-earlier-sidecar"),
        pytest.param([1], [(False, 4), (True, 1)], 4, id="sidecar-starts-after-init-container"),
    ],
)
def test_peak(containers: list[int], init_containers: list[tuple[bool, int]], peak: int) -> None:
    found = peak_of_containers(
        [{"cpu": amount} for amount in containers],
        [(sidecar, {"cpu": amount}) for sidecar, amount in init_containers],
    )
    as_quantities = peak_of_containers(
        [{"cpu": Quantity.of(amount)} for amount in containers],
        [(sidecar, {"cpu": Quantity.of(amount)}) for sidecar, amount in init_containers],
    )

    assert found == {"cpu": peak}
    assert as_quantities == {"cpu": Quantity.of(peak)}


def test_init_containers_count_what_they_ask_for() -> None:
    """A sidecar with many resources is not copied for every init container after it."""

    def peak(count: int) -> dict[str, int]:
        sidecar = {f"example.com/r{number}": 1 for number in range(count)}
        return peak_of_containers([{"cpu": 1}], [(True, sidecar), *([(False, {"cpu": 2})] * count)])

    assert peak(2) == {"cpu": 2, "example.com/r0": 1, "example.com/r1": 1}
    assert steps(lambda: peak(200)) < 2.5 * steps(lambda: peak(100))


def test_sidecars_restart_always() -> None:
    assert is_sidecar({"restartPolicy": "Always"})
    assert not is_sidecar({})
