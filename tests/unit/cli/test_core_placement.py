"""The two processes of a cluster on a core each."""

from __future__ import annotations

import os

import pytest

from allot.cli import core_placement
from allot.cli.core_placement import place_apart, use_all_cores

OTHER = 12345


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """The cores of processes, as they are set."""
    found: dict[int, set[int]] = {}

    def place(pid: int, cores: set[int]) -> None:
        found[pid] = set(cores)

    monkeypatch.setattr(os, "sched_setaffinity", place, raising=False)
    return found


def test_two_processes_have_a_core_each(
    placed: dict[int, set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_placement, "CORES", [4, 7])
    monkeypatch.setattr(os, "getpid", lambda: 100)
    place_apart(OTHER)
    assert placed == {0: {4}, OTHER: {7}}
    use_all_cores()
    assert placed[0] == {4, 7}


def test_clusters_do_not_all_have_their_servers_on_one_core(
    placed: dict[int, set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_placement, "CORES", [0, 1])
    monkeypatch.setattr(os, "getpid", lambda: 101)
    place_apart(OTHER)
    assert placed == {0: {1}, OTHER: {0}}


@pytest.mark.parametrize("count", [0, 1, 3, 64])
def test_other_numbers_of_cores_are_left_to_the_system(
    count: int, placed: dict[int, set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_placement, "CORES", [*range(count)])
    place_apart(OTHER)
    use_all_cores()
    assert not placed


def test_a_process_that_has_ended_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _cores: set[int]) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(core_placement, "CORES", [0, 1])
    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    place_apart(OTHER)
