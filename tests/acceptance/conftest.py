"""The clusters that scenarios run against: one of each kind for a whole test session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.acceptance.playing import Endings, played
from tests.acceptance.runner.acceptance import AcceptanceRunner, open_runner
from tests.acceptance.runner.scenarios import Scenario
from tests.acceptance.server_process import running_api_server, running_cluster

MAX_WAIT_SECONDS = 3.0
"""Time limits are for machines that do nothing else."""


@pytest.fixture(scope="session")
def kubectl() -> Path | None:
    program = shutil.which("kubectl")
    return Path(program) if program else None


@pytest.fixture(scope="session")
def memory_runner(
    tmp_path_factory: pytest.TempPathFactory, kubectl: Path | None
) -> Iterator[AcceptanceRunner]:
    """An API server without anything beside it."""
    with (
        running_api_server(tmp_path_factory.mktemp("memory"), "memory") as kubeconfig,
        open_runner(kubeconfig, kubectl=kubectl, simulate_nodes=True) as runner,
    ):
        yield runner


@pytest.fixture(scope="session")
def endings(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    kubectl: Path | None,
) -> Iterator[Endings]:
    """How those scenarios end on `allot up` that this session has tests for."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent
    scenarios: list[Scenario] = [
        cast("Scenario", item.callspec.params["scenario"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "endings" in item.fixturenames
    ]
    runnable = [each for each in scenarios if kubectl or not each.needs_kubectl]

    @contextmanager
    def opening() -> Iterator[AcceptanceRunner]:
        with (
            running_cluster(tmp_path_factory.mktemp("up")) as kubeconfig,
            open_runner(
                kubeconfig, kubectl=kubectl, simulate_nodes=True, patience=MAX_WAIT_SECONDS
            ) as runner,
        ):
            yield runner

    with played(Endings(directory / "endings"), runnable, opening) as running:
        yield running
