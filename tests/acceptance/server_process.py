"""`allot apiserver` and `allot scheduler` as processes of their own."""

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


SCHEDULER_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: 2
profiles:
- schedulerName: default-scheduler
- schedulerName: short-binding-timeout
  pluginConfig:
  - name: DynamicResources
    args: {bindingTimeout: 4s}
"""


@contextmanager
def running_scheduler(directory: Path, kubeconfig: Path) -> Iterator[None]:
    """A scheduler beside the server; it must stop cleanly too."""
    log, configuration = directory / "scheduler.log", directory / "scheduler.yaml"
    configuration.write_text(SCHEDULER_CONFIGURATION)
    arguments = ["scheduler", "--kubeconfig", str(kubeconfig), "--config", str(configuration)]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*PROGRAM, *arguments, "--port", "0"], stdout=output, stderr=output
        ) as scheduler,
    ):
        try:
            yield
        finally:
            scheduler.terminate()
            try:
                code = scheduler.wait(STOP_SECONDS)
            finally:
                scheduler.kill()
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
