"""An `allot apiserver` in its own process, for tests that stop or kill it."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Self

import yaml

from allot.testing.http_client import Address

PROGRAM = Path(sys.executable).with_name("allot")


class ApiServerProcess:
    """A server and its data directory. Can be started again after it has exited."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self._arguments = arguments
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None
        self.first_line = ""

    def start(self) -> Self:
        """Returns when it is ready. Restarts use the same port."""
        command = [
            str(PROGRAM),
            "apiserver",
            "--port",
            self._port,
            "--data-dir",
            str(self.directory),
        ]
        self._process = subprocess.Popen(  # noqa: S603
            [*command, *self._arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline()
        if not self._process.stdout.readline():
            raise RuntimeError(f"the server did not start: exit code {self._process.wait()}")
        self._port = str(self.address.port)
        return self

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def address(self) -> Address:
        config = yaml.safe_load(self.kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]["server"]
        host, port = server.removeprefix("https://").rsplit(":", 1)
        context = ssl.create_default_context(cafile=str(self.directory / "pki" / "ca.crt"))
        return Address(host, int(port), config["users"][0]["user"]["token"], context)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, which: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(which)

    def wait(self) -> int:
        """Its exit code."""
        assert self._process is not None
        code = self._process.wait(timeout=20)
        if self._process.stdout:
            self._process.stdout.close()
        return code

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill the process without a graceful shutdown."""
        self.send(signal.SIGKILL)
        self.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        elif self._process is not None and self._process.stdout:
            self._process.stdout.close()
