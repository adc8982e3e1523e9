"""Nothing that one user writes stops the cluster: it answers, ordinary pods are bound, and it can be stopped and cleaned.

Figures are printed, and appended as JSON lines to the file that ALLOT_ATTACKS_REPORT names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.attacks.attack import HEADER, Figures, run_attack
from tests.attacks.attack_list import ATTACKS, REPRESENTATIVE
from tests.attacks.clusters import KUBERNETES, made_cluster
from tests.attacks.further_attacks import FURTHER
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import find_etcd

REPORT: Final = "ALLOT_ATTACKS_REPORT"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]


def _attacked(shape: str, name: str, directory: Path) -> None:
    with made_cluster(shape, directory / "cluster") as cluster:
        figures = run_attack(cluster, shape, {**ATTACKS, **FURTHER}[name]())
    _report(figures)
    assert not figures.problems, "\n".join(figures.problems)


def _report(figures: Figures) -> None:
    sys.stdout.write(f"\n{HEADER}\n{figures.row()}\n{figures.message}\n")
    if REPORT in os.environ:
        with Path(os.environ[REPORT]).open("a") as file:
            file.write(f"{figures.as_json()}\n")


@pytest.mark.parametrize("name", ATTACKS)
def test_on_two_processes(name: str, tmp_path: Path) -> None:
    _attacked("up", name, tmp_path)


@pytest.mark.parametrize("name", FURTHER)
def test_further_on_two_processes(name: str, tmp_path: Path) -> None:
    _attacked("up", name, tmp_path)


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_on_separate_processes(name: str, tmp_path: Path) -> None:
    _attacked("separate", name, tmp_path)


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_on_etcd(name: str, tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    _attacked("etcd", name, tmp_path)


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_scheduler_and_api_server_apart(name: str, tmp_path: Path) -> None:
    _attacked("apart", name, tmp_path)


@pytest.mark.parametrize("name", REPRESENTATIVE[:2])
def test_scheduler_beside_kubernetes(name: str, tmp_path: Path) -> None:
    """The API server is not ours: what counts is that ordinary pods are bound, and that the scheduler stops."""
    if KUBERNETES not in os.environ:
        pytest.skip(f"{KUBERNETES} names no directory with kube-apiserver and etcd")
    _attacked("kubernetes", name, tmp_path)
