"""`allot apiserver` and `allot up` as processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.runner.rest import CONNECTION_ERRORS, RestClient

START_SECONDS, STOP_SECONDS = 150, 120
PROGRAM = [sys.executable, "-c", "from allot.cli.main import run; raise SystemExit(run())"]

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
FEATURE_GATES = "DRAPartitionableDevicesType=true"
"""The only gate that scenarios need and that is off by default."""


@contextmanager
def running_api_server(directory: Path, storage: str) -> Iterator[Path]:
    """The kubeconfig of a server that is ready; in the end it must stop cleanly, without a traceback in its log."""
    with _running(directory, "apiserver", "--storage", storage) as kubeconfig:
        yield kubeconfig


@contextmanager
def running_cluster(directory: Path, *arguments: str, gates: str = FEATURE_GATES) -> Iterator[Path]:
    """The same of a whole cluster with the scheduler that scenarios want."""
    configuration = directory / "scheduler.yaml"
    configuration.write_text(SCHEDULER_CONFIGURATION)
    common = ("--scheduler-config", str(configuration), "--feature-gates", gates)
    with _running(directory, "up", *common, *arguments) as kubeconfig:
        yield kubeconfig


@contextmanager
def _running(directory: Path, *arguments: str) -> Iterator[Path]:
    kubeconfig, log = directory / "kubeconfig", directory / "server.log"
    command = [*PROGRAM, *arguments, "--port", "0", "--data-dir", str(directory)]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            _wait_until_ready(process, kubeconfig, log)
            yield kubeconfig
        finally:
            process.terminate()
            try:
                code = process.wait(STOP_SECONDS)
            finally:
                process.kill()
    said = log.read_text()
    assert code == 0, said
    assert "Traceback" not in said, said


def _wait_until_ready(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    # They say where the kubeconfig is when everything works.
    while b"kubeconfig" not in log.read_bytes().lower():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"it does not start: {log.read_text()}"
        time.sleep(0.05)
    with RestClient.from_kubeconfig(kubeconfig) as client:
        while not _is_ready(client):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"it is not ready: {log.read_text()}"
            time.sleep(0.05)


def _is_ready(client: RestClient) -> bool:
    try:
        return client.request("GET", "/readyz").code == 200
    except CONNECTION_ERRORS:
        return False
