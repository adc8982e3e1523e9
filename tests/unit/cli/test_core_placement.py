"""The two processes of a cluster on a core each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from allot.cli import core_placement
from allot.cli.core_placement import use_all_cores, use_one_core

FORKED = """
import os
from allot.cli import core_placement
cores = core_placement.CORES
core_placement.PAIR = len(cores)
core_placement.use_one_core(0)
alone = os.sched_getaffinity(0)
pid = os.fork()
if not pid:
    os._exit(0 if os.sched_getaffinity(0) == {*cores} else 1)
assert alone == {cores[0]}
assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The cores of this process, as they are set."""
    found: list[set[int]] = []

    def place(_pid: int, cores: set[int]) -> None:
        found.append(set(cores))

    monkeypatch.setattr(os, "sched_setaffinity", place, raising=False)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    return found


@pytest.mark.parametrize(("number", "core"), [(100, 4), (101, 7)])
def test_of_two_cores_a_process_has_one(
    number: int, core: int, placed: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_placement, "CORES", [4, 7])
    use_one_core(number)
    use_all_cores()
    assert placed == [{core}, {4, 7}]


@pytest.mark.parametrize("count", [0, 1, 3, 64])
def test_other_numbers_of_cores_are_left_to_the_system(
    count: int, placed: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_placement, "CORES", [*range(count)])
    use_one_core(0)
    use_all_cores()
    assert not placed


def test_where_it_may_not_be_done_it_is_no_error(
    placed: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int, _cores: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(core_placement, "CORES", [0, 1])
    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    use_one_core(0)
    assert not placed


@pytest.mark.skipif(len(core_placement.CORES) < 2, reason="the machine has one core")
def test_forked_processes_may_use_all_cores() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True)
