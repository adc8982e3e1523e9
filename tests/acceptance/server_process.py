"""`allot apiserver` as a process of its own, on a free port of this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.runner.rest import CONNECTION_ERRORS, RestClient

START_SECONDS, STOP_SECONDS = 60, 20
PROGRAM = [sys.executable, "-c", "from allot.cli.main import run; raise SystemExit(run())"]


@contextmanager
def running_api_server(directory: Path, storage: str) -> Iterator[Path]:
    """The kubeconfig of a server that is ready; in the end it must stop cleanly, without a traceback in its log."""
    kubeconfig, log = directory / "kubeconfig", directory / "server.log"
    arguments = ["apiserver", "--storage", storage, "--port", "0", "--data-dir", str(directory)]
    with (
        log.open("wb") as output,
        subprocess.Popen([*PROGRAM, *arguments], stdout=output, stderr=output) as server,
    ):
        try:
            _wait_until_ready(server, kubeconfig, log)
            yield kubeconfig
        finally:
            server.terminate()
            try:
                code = server.wait(STOP_SECONDS)
            finally:
                server.kill()
    said = log.read_text()
    assert code == 0, said
    assert "Traceback" not in said, said


def _wait_until_ready(server: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    # The server says where its kubeconfig is when that is written.
    while b"--kubeconfig" not in log.read_bytes():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"the server does not start: {log.read_text()}"
        time.sleep(0.05)
    with RestClient.from_kubeconfig(kubeconfig) as client:
        while not _is_ready(client):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"the server is not ready: {log.read_text()}"
            time.sleep(0.05)


def _is_ready(client: RestClient) -> bool:
    try:
        return client.request("GET", "/readyz").code == 200
    except CONNECTION_ERRORS:
        return False
