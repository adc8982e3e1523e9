"""Servers and namespaces that the tests of clients share."""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.api_server import RunningServer

_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def _sockets_that_clients_forget() -> Iterator[None]:
    """The official clients leave closing to the garbage collector, which warns: not in the test of another module."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server on SQLite, for all tests of this process. Its log must stay free of mistakes."""
    with RunningServer(tmp_path_factory.mktemp("api-server"), "sqlite") as running:
        yield running
    assert "Traceback" not in running.log(), running.log()


@pytest.fixture
def namespace(server: RunningServer) -> str:
    """A new namespace."""
    name = f"test-{next(_numbers)}"
    answer = server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.code == 201, answer
    return name


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server that only this test uses, and may restart."""
    with RunningServer(tmp_path, "sqlite") as running:
        yield running
    assert "Traceback" not in running.log(), running.log()
