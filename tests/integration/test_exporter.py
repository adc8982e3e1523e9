"""`allot exporter` of a cluster that runs: a scrape shows what has just happened."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.server_process import PROGRAM
from tests.attacks.clusters import free_ports
from tests.integration.test_up import POD, PODS, START_SECONDS, TEMPLATE, up, wait_until_running

pytestmark = pytest.mark.timeout(600)

HELD = 'allot_devices{driver="gpu.example.com",state="held"}'


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        body: bytes = answer.read()
    return body.decode()


def wait_for(port: int, line: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if line in scrape(port):
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, line
        time.sleep(0.1)


def test_a_scrape_is_current(tmp_path: Path) -> None:
    manifest = tmp_path / "template.yaml"
    manifest.write_text(TEMPLATE)
    directory = tmp_path / "state"
    (port,) = free_ports(1)
    with up(directory, "--hardware", "gpu-server=1", "-f", manifest) as cluster:
        kubeconfig = str(directory / "kubeconfig")
        given = ["--kubeconfig", kubeconfig, "--port", str(port), "--interval", "0"]
        with (
            cluster.client() as client,
            subprocess.Popen(
                [*PROGRAM, "exporter", *given], stdout=subprocess.PIPE, text=True
            ) as process,
        ):
            try:
                wait_for(port, f"{HELD} 0.0")
                client.call("POST", PODS, body=POD)
                wait_until_running(client, "p")
                wait_for(port, f"{HELD} 1.0")
                assert "allot_pod_scheduling_wait_seconds_count 1.0" in scrape(port)
                process.terminate()
                assert process.wait(START_SECONDS) == 0
            finally:
                process.kill()
