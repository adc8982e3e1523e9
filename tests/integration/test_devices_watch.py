"""`allot devices --watch` of a cluster that runs: a device that a pod gets is printed."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.acceptance.server_process import PROGRAM
from tests.integration.test_up import POD, PODS, START_SECONDS, TEMPLATE, up, wait_until_running

pytestmark = pytest.mark.timeout(600)


def wait_for(lines: list[str], word: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not any(word in line for line in lines):
        assert time.monotonic() < deadline, lines
        time.sleep(0.02)


def test_a_device_that_a_pod_gets(tmp_path: Path) -> None:
    manifest = tmp_path / "template.yaml"
    manifest.write_text(TEMPLATE)
    directory = tmp_path / "state"
    with up(directory, "--hardware", "gpu-server=1", "-f", manifest) as cluster:
        kubeconfig = str(directory / "kubeconfig")
        command = [*PROGRAM, "devices", "--watch", "--kubeconfig", kubeconfig, "--interval", "0.1"]
        with (
            cluster.client() as client,
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        ):
            assert process.stdout is not None
            lines: list[str] = []
            reader = threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True)
            reader.start()
            try:
                wait_for(lines, "12 free")  # the last line of the first list counts states
                assert not any("pod/default/p" in line for line in lines)
                client.call("POST", PODS, body=POD)
                wait_until_running(client, "p")
                wait_for(lines, "pod/default/p")
            finally:
                process.kill()
                reader.join(10)
