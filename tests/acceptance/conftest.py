"""The API servers that scenarios run against: one of each kind for a whole test session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.runner.acceptance import AcceptanceRunner, open_runner
from tests.acceptance.server_process import running_api_server, running_scheduler


@pytest.fixture(scope="session")
def kubectl() -> Path | None:
    program = shutil.which("kubectl")
    return Path(program) if program else None


@pytest.fixture(scope="session")
def memory_runner(
    tmp_path_factory: pytest.TempPathFactory, kubectl: Path | None
) -> Iterator[AcceptanceRunner]:
    with (
        running_api_server(tmp_path_factory.mktemp("memory"), "memory") as kubeconfig,
        open_runner(kubeconfig, kubectl=kubectl, simulate_nodes=True) as runner,
    ):
        yield runner


@pytest.fixture(scope="session")
def sqlite_runner(
    tmp_path_factory: pytest.TempPathFactory, kubectl: Path | None
) -> Iterator[AcceptanceRunner]:
    with (
        running_api_server(tmp_path_factory.mktemp("sqlite"), "sqlite") as kubeconfig,
        open_runner(kubeconfig, kubectl=kubectl, simulate_nodes=True) as runner,
    ):
        yield runner


@pytest.fixture(scope="session")
def scheduled_runner(
    tmp_path_factory: pytest.TempPathFactory, kubectl: Path | None
) -> Iterator[AcceptanceRunner]:
    directory = tmp_path_factory.mktemp("scheduled")
    with (
        running_api_server(directory, "memory") as kubeconfig,
        running_scheduler(directory, kubeconfig),
        open_runner(kubeconfig, kubectl=kubectl, simulate_nodes=True) as runner,
    ):
        yield runner
